/** Turns a request into checked values, or into the problem that names what is wrong with it. */

import type { z } from 'zod';

import { problem, type HttpReply, type HttpRequest } from '#shared/app/http.ts';
import { parseSelector, type Selector } from '#shared/domain/selector.ts';

import { IDEMPOTENCY_KEY } from './schemas.ts';

export type Parsed<T> =
  { readonly kind: 'value'; readonly value: T } | { readonly kind: 'problem'; readonly reply: HttpReply };

export const MAX_BODY_BYTES = 64 * 1_024;

const value = <T>(parsed: T): Parsed<T> => ({ kind: 'value', value: parsed });
const refused = (reply: HttpReply): { readonly kind: 'problem'; readonly reply: HttpReply } => ({
  kind: 'problem',
  reply,
});

export interface FieldError {
  readonly field: string;
  readonly detail: string;
}

/** 400 with the fields that are wrong. */
export const invalid = (errors: readonly FieldError[]): HttpReply =>
  problem(
    400,
    'InvalidRequest',
    errors.map(({ field, detail }) => (field === '' ? detail : `${field}: ${detail}`)).join('; '),
    { errors },
  );

const fieldErrors = (issues: readonly z.core.$ZodIssue[]): readonly FieldError[] =>
  issues
    .flatMap((issue) =>
      issue.code === 'unrecognized_keys'
        ? issue.keys.map((key) => ({ field: [...issue.path, key].join('.'), detail: 'is not known' }))
        : [{ field: issue.path.join('.'), detail: issue.message }],
    )
    // Field names of strangers are echoed, but not at any length.
    .slice(0, 20)
    .map(({ field, detail }) => ({ field: field.slice(0, 200), detail: detail.slice(0, 500) }));

const check = <S extends z.ZodType>(schema: S, given: unknown): Parsed<z.output<S>> => {
  const result = schema.safeParse(given);
  return result.success ? value(result.data) : refused(invalid(fieldErrors(result.error.issues)));
};

const MEDIA_TYPE = /^application\/json\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?$/i;

const parseText = (body: Uint8Array): Parsed<unknown> => {
  try {
    return value(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body)));
  } catch {
    return refused(problem(400, 'MalformedBody', 'The body is not valid JSON in UTF-8.'));
  }
};

/** An absent body is `{}`. */
export const parseBody = <S extends z.ZodType>(schema: S, request: HttpRequest): Parsed<z.output<S>> => {
  if (request.body.length === 0) return check(schema, {});
  if (request.body.length > MAX_BODY_BYTES) {
    return refused(problem(413, 'BodyTooLarge', `A body may have at most ${MAX_BODY_BYTES} bytes.`));
  }
  if (!MEDIA_TYPE.test(request.headers['content-type'] ?? '')) {
    return refused(
      problem(
        415,
        'UnsupportedMediaType',
        'The body must be application/json in UTF-8.',
        {},
        {
          'accept-post': 'application/json',
        },
      ),
    );
  }
  const json = parseText(request.body);
  return json.kind === 'problem' ? json : check(schema, json.value);
};

/** Each parameter at most once. */
export const parseQuery = <S extends z.ZodType>(schema: S, query: URLSearchParams): Parsed<z.output<S>> => {
  const names = [...query.keys()];
  const repeated = names.filter((name, index) => names.indexOf(name) !== index);
  if (repeated.length > 0) {
    const fields = [...new Set(repeated)].slice(0, 20);
    return refused(
      invalid(fields.map((field) => ({ field: field.slice(0, 200), detail: 'is given twice' }))),
    );
  }
  return check(schema, Object.fromEntries(query));
};

export const parseLabelSelector = (text: string | undefined): Parsed<Selector> => {
  const parsed = parseSelector(text ?? '');
  if (parsed.kind === 'selector') return value(parsed.selector);
  const { position, message } = parsed.error;
  return refused(invalid([{ field: 'labelSelector', detail: `${message} at character ${position}` }]));
};

/** `undefined` when the request has no `Idempotency-Key`. */
export const parseIdempotencyKey = (request: HttpRequest): Parsed<string | undefined> => {
  const given = request.headers['idempotency-key'];
  if (given === undefined) return value(undefined);
  const result = IDEMPOTENCY_KEY.safeParse(given);
  return result.success
    ? value(result.data)
    : refused(
        invalid(result.error.issues.map(({ message }) => ({ field: 'Idempotency-Key', detail: message }))),
      );
};
