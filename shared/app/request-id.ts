/** Request ids: every answer carries one, every log line of the request has it, and a caller may choose it. */

import { AsyncLocalStorage } from 'node:async_hooks';

import { replyToError, type HttpHandler, type HttpReply } from './http.ts';
import type { Ids } from './ids.ts';
import type { Fields, Log } from './log.ts';
import { contextOfRequest, formatTraceparent, logFieldsOf } from './trace-context.ts';

export const REQUEST_ID = 'x-request-id';

type Headers = Readonly<Record<string, string | undefined>>;

/** What identifiers look like, and nothing that could break a header, a log line or a page. */
const SANE = /^[\w.:/+=@-]{1,128}$/;

/** The caller's own when it is sane, else the id of its trace, else a new one. */
export const requestIdOf = (headers: Headers, ids: Pick<Ids, 'uuid'>): string => {
  const given = headers[REQUEST_ID] ?? '';
  return SANE.test(given) ? given : (contextOfRequest(headers)?.traceId ?? ids.uuid());
};

const isProblem = ({ headers }: HttpReply): boolean =>
  headers?.['content-type'] === 'application/problem+json';

/** The same answer under an id: in its header, and in the problem that it tells. */
export const withRequestId = (reply: HttpReply, requestId: string): HttpReply => ({
  ...reply,
  headers: { ...reply.headers, [REQUEST_ID]: requestId },
  ...(isProblem(reply) ? { body: { ...Object(reply.body), requestId } } : {}),
});

interface Request {
  readonly fields: Fields;
  readonly traceparent: string | undefined;
}

export interface RequestScope {
  run<T>(request: Request, work: () => Promise<T>): Promise<T>;
  /** Of the request that the caller runs in; empty outside of any. */
  readonly fields: () => Fields;
  /** The same, where the request said in which span it was sent. */
  readonly traceparent: () => string | undefined;
}

/** What is known of a request wherever it leads. Work that several requests share counts as that of the first. */
export const requestScope = (): RequestScope => {
  const storage = new AsyncLocalStorage<Request>();
  return {
    run: (request, work) => storage.run(request, work),
    fields: () => storage.getStore()?.fields ?? {},
    traceparent: () => storage.getStore()?.traceparent,
  };
};

export interface IdentifiedOptions {
  readonly ids: Pick<Ids, 'uuid'>;
  /** One whose lines carry the fields of `scope`. */
  readonly log: Log;
  readonly scope: RequestScope;
  /** Where the platform keeps the traces of requests; lines are shown under theirs. */
  readonly projectId: string;
}

/** Gives every answer its request id, that to an error included, which is logged here. */
export const identified =
  (handler: HttpHandler, { ids, log, scope, projectId }: IdentifiedOptions): HttpHandler =>
  (request) => {
    const requestId = requestIdOf(request.headers, ids);
    const context = contextOfRequest(request.headers);
    const fields = { requestId, ...(context ? logFieldsOf(projectId, context) : {}) };
    const traceparent = context && formatTraceparent(context);
    return scope.run({ fields, traceparent }, async () => {
      try {
        return withRequestId(await handler(request), requestId);
      } catch (error) {
        log.error(`${request.method} request failed`, error);
        return withRequestId(replyToError(error), requestId);
      }
    });
  };
