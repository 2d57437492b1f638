/** The OpenAPI document as a judge of answers, and as a source of random requests. */

import { z } from 'zod';

import type { HttpReply, HttpRequest } from '#shared/app/http.ts';

import { openApiDocument } from '../../../functions/discovery/openapi.ts';
import { inputSchemas, outputSchemas } from '../../../functions/discovery/schemas.ts';

const content = z.record(z.string(), z.object({ schema: z.record(z.string(), z.unknown()) }));
const response = z.object({
  content: content.optional(),
  headers: z.record(z.string(), z.object({ required: z.boolean() })).optional(),
});
const parameter = z.object({ name: z.string(), in: z.enum(['query', 'header', 'path']) });
const operation = z.object({
  parameters: z.array(parameter).optional(),
  requestBody: z
    .object({
      content: z.record(
        z.string(),
        z.object({ schema: z.object({ properties: z.record(z.string(), z.unknown()).optional() }) }),
      ),
    })
    .optional(),
  responses: z.record(z.string(), response),
});
const pathItem = z.object({
  get: operation.optional(),
  post: operation.optional(),
  delete: operation.optional(),
});
const documentSchema = z.object({ paths: z.record(z.string(), pathItem) });

const LIMITS = { minSeconds: 10, maxSeconds: 86_400, defaultSeconds: 300 };
const document = documentSchema.parse(openApiDocument(inputSchemas(LIMITS)));

export interface Operation {
  readonly method: string;
  readonly path: string;
  readonly spec: z.output<typeof operation>;
}

export const operations: readonly Operation[] = Object.entries(document.paths).flatMap(([path, item]) =>
  (['get', 'post', 'delete'] as const).flatMap((method) => {
    const spec = item[method];
    return spec ? [{ method: method.toUpperCase(), path, spec }] : [];
  }),
);

const SCHEMAS: Readonly<Record<string, z.ZodType>> = {
  Lease: outputSchemas.lease,
  LeaseSummary: outputSchemas.leaseSummary,
  ProxyList: outputSchemas.proxies,
  LeaseList: outputSchemas.leases,
  Problem: outputSchemas.problem,
  Status: outputSchemas.status,
};

const schemaNamed = (reference: unknown): z.ZodType => {
  const name = typeof reference === 'string' ? reference.split('/').at(-1) : undefined;
  return name === undefined ? z.record(z.string(), z.unknown()) : (SCHEMAS[name] ?? z.never());
};

/** What is wrong with an answer, by the document; empty = nothing. */
export const faultsOf = ({ spec }: Operation, reply: HttpReply): readonly string[] => {
  const documented = spec.responses[String(reply.status)];
  if (!documented) return [`status ${reply.status} is not documented`];
  const missing = Object.entries(documented.headers ?? {})
    .filter(([name, { required }]) => required && reply.headers?.[name.toLowerCase()] === undefined)
    .map(([name]) => `no header ${name}`);
  if (!documented.content) return reply.body === undefined ? missing : [...missing, 'a body'];
  const type = reply.headers?.['content-type'] ?? 'application/json';
  const media = documented.content[type];
  if (!media) return [...missing, `content type ${type} is not documented`];
  const parsed = schemaNamed(media.schema['$ref']).safeParse(JSON.parse(JSON.stringify(reply.body)));
  return parsed.success ? missing : [...missing, z.prettifyError(parsed.error)];
};

const GOOD: Readonly<Record<string, readonly unknown[]>> = {
  holder: ['crawler-1', 'crawler-2'],
  ttlSeconds: [10, 300, 86_400],
  labelSelector: ['', 'pool=retail', 'pool in (a,b),!x', 'x notin (y)'],
  namespace: ['crawlers', 'other'],
  zone: ['europe-west1-b'],
  provider: ['gcp', 'External'],
  proxy: [{ namespace: 'crawlers', name: 'proxy-1' }],
  exclude: [[], ['a-b-c']],
  outcome: ['ok', 'failed', 'blocked', 'slow'],
  target: ['https://example.com/'],
  limit: ['1', '500'],
  continue: [Buffer.from('["a","b","c"]').toString('base64url')],
  free: ['true', 'false'],
  'X-Request-Id': ['request-1'],
  'If-None-Match': ['*', '"x", W/"y"'],
  'Idempotency-Key': ['key-1', 'key-2', 'key-3'],
};

const BAD: readonly unknown[] = [
  null,
  true,
  -1,
  0,
  1e308,
  0.5,
  '',
  ' ',
  'x'.repeat(5_000),
  '\u0000',
  '\ud800',
  '../../etc/passwd',
  '__proto__',
  '<script>',
  "'; drop table",
  '((((',
  'a in (',
  '%00',
  [],
  [[[[]]]],
  {},
  { $ref: '#' },
  [null],
];

const BODIES: readonly string[] = ['', '{', '[]', 'null', '"x"', '{"holder":"a","holder":1}', '\uFEFF{}'];
const TYPES: readonly string[] = ['text/plain', 'application/xml', 'application/json; charset=latin1', ''];

export interface Fuzz {
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Ids of leases that were granted. */
  readonly leaseIds: readonly string[];
}

const pick = <T>({ random }: Fuzz, from: readonly T[]): T | undefined =>
  from[Math.floor(random() * from.length)];

const valueOf = (fuzz: Fuzz, name: string): unknown =>
  fuzz.random() < 0.85 ? pick(fuzz, GOOD[name] ?? ['x']) : pick(fuzz, BAD);

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

const bodyOf = (fuzz: Fuzz, { spec }: Operation): string | undefined => {
  const schema = spec.requestBody?.content['application/json']?.schema;
  if (!schema) return fuzz.random() < 0.05 ? '{"x":1}' : undefined;
  if (fuzz.random() < 0.05) return pick(fuzz, BODIES);
  const names = Object.keys(schema.properties ?? {});
  const chosen = names.filter((name) => name === 'holder' || name === 'outcome' || fuzz.random() < 0.15);
  const unknown = fuzz.random() < 0.03 ? [['unknown', 1] as const] : [];
  return JSON.stringify(
    Object.fromEntries([...chosen.map((name) => [name, valueOf(fuzz, name)] as const), ...unknown]),
  );
};

const idOf = (fuzz: Fuzz): string => {
  const known = pick(fuzz, fuzz.leaseIds);
  if (known !== undefined && fuzz.random() < 0.7) return known;
  if (fuzz.random() < 0.5) return `uid.${'0'.repeat(32)}`;
  // Without an id it would be another path.
  return encodeURIComponent(textOf(pick(fuzz, BAD)).toWellFormed()) || 'x';
};

const queryOf = (fuzz: Fuzz, { spec }: Operation): URLSearchParams => {
  const query = new URLSearchParams();
  for (const { name, in: place } of spec.parameters ?? []) {
    const isWanted = name === 'holder' ? fuzz.random() < 0.9 : fuzz.random() < 0.3;
    if (place === 'query' && isWanted) query.append(name, textOf(valueOf(fuzz, name)));
  }
  if (fuzz.random() < 0.03) query.append('unknown', 'x');
  return query;
};

const headersOf = (fuzz: Fuzz, { spec }: Operation, body: string | undefined): Record<string, string> => {
  const headers: Record<string, string> = {};
  if (body !== undefined) {
    headers['content-type'] = fuzz.random() < 0.97 ? 'application/json' : (pick(fuzz, TYPES) ?? '');
  }
  const isKeyed = (spec.parameters ?? []).some(({ name }) => name === 'Idempotency-Key');
  if (isKeyed && fuzz.random() < 0.3) headers['idempotency-key'] = textOf(valueOf(fuzz, 'Idempotency-Key'));
  if (fuzz.random() < 0.2) headers['x-request-id'] = textOf(valueOf(fuzz, 'X-Request-Id'));
  if (fuzz.random() < 0.1) headers['if-none-match'] = textOf(valueOf(fuzz, 'If-None-Match'));
  if (fuzz.random() < 0.1) headers['authorization'] = textOf(pick(fuzz, BAD));
  return headers;
};

/** A request that the document describes, or nearly. */
export const randomRequest = (fuzz: Fuzz, of: Operation): HttpRequest => {
  const body = bodyOf(fuzz, of);
  return {
    method: of.method,
    path: of.path.replace('{id}', idOf(fuzz)),
    query: queryOf(fuzz, of),
    headers: headersOf(fuzz, of, body),
    body: new TextEncoder().encode(body ?? ''),
  };
};
