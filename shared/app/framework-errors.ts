/**
 * Errors that the framework finds before any function runs: a malformed body, an unknown charset or encoding, a path that
 * does not decode. It would answer with an HTML page, and offers no hook for its Express application. Node announces every
 * request together with its server before the application sees it, and that is where an error handler is put in its place.
 */

import { subscribe } from 'node:diagnostics_channel';

import { headersOf, problem, sendReply, type FrameworkHeaders, type HttpReply } from './http.ts';
import type { Ids } from './ids.ts';
import type { Log } from './log.ts';
import { requestIdOf, withRequestId } from './request-id.ts';

/** What body parsers and the router attach to their errors; read by hand, since echo needs nothing else of a parser. */
const statusOf = (error: unknown): number | undefined => {
  if (typeof error !== 'object' || error === null || !('status' in error)) return undefined;
  const { status } = error;
  return typeof status === 'number' && Number.isInteger(status) && status >= 400 && status < 500
    ? status
    : undefined;
};

const isUnknownEncoding = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && 'type' in error && error.type === 'encoding.unsupported';

export const replyToFrameworkError = (error: unknown): HttpReply => {
  const status = statusOf(error);
  if (status === undefined) return problem(500, 'Internal', 'The request failed for a reason of ours.');
  if (status === 413) return problem(413, 'BodyTooLarge', 'The body is too large.');
  if (status === 415) {
    return isUnknownEncoding(error)
      ? problem(415, 'UnsupportedEncoding', 'The body has a content encoding that is not known.')
      : problem(415, 'UnsupportedMediaType', 'The body must be application/json in UTF-8.');
  }
  return error instanceof URIError
    ? problem(400, 'InvalidRequest', 'The path is not valid percent-encoded UTF-8.')
    : problem(400, 'MalformedBody', 'The body is not valid JSON in UTF-8, or not complete.');
};

type Next = (error?: unknown) => void;
interface ErrorRequest {
  readonly headers: FrameworkHeaders;
}
interface ErrorResponse {
  readonly headersSent: boolean;
  status(code: number): unknown;
  setHeader(name: string, value: string): unknown;
  end(body?: string): unknown;
}
/** Express knows an error handler by its four parameters. */
type ErrorHandler = (error: unknown, request: ErrorRequest, response: ErrorResponse, next: Next) => void;

interface Application {
  use(handler: ErrorHandler): unknown;
}
interface Server {
  listeners(event: 'request'): readonly unknown[];
}

const isApplication = (listener: unknown): listener is Application =>
  typeof listener === 'function' && 'use' in listener && typeof listener.use === 'function';

const isServer = (value: unknown): value is Server =>
  typeof value === 'object' &&
  value !== null &&
  'listeners' in value &&
  typeof value.listeners === 'function';

/** From now on, whatever server this process runs answers such errors with problem details; those of ours are logged. */
export const answerFrameworkErrors = (log: Log, ids: Pick<Ids, 'uuid'>): void => {
  const seen = new WeakSet<Server>();
  const handle: ErrorHandler = (error, request, response, next) => {
    const requestId = requestIdOf(headersOf(request.headers), ids);
    const reply = withRequestId(replyToFrameworkError(error), requestId);
    if (reply.status >= 500) log.error('the framework failed', error, { requestId });
    if (response.headersSent) next(error);
    else sendReply(response, reply);
  };
  subscribe('http.server.request.start', (message) => {
    const server =
      typeof message === 'object' && message !== null && 'server' in message ? message.server : undefined;
    if (!isServer(server) || seen.has(server)) return;
    seen.add(server);
    for (const listener of server.listeners('request')) if (isApplication(listener)) listener.use(handle);
  });
};
