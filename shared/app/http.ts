/** HTTP as handlers see it: a request as data in, a reply as data out. */

import type { Log } from './log.ts';
import { SystemError, hasCode } from './errors.ts';

export interface HttpRequest {
  readonly method: string;
  /** Path without the query, as sent (not decoded). */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The body as bytes, before any parsing. */
  readonly body: Uint8Array;
  /** The address of whoever holds the other end of the socket: on a platform, its front end. */
  readonly peer?: string;
}

export interface HttpReply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

export type HttpHandler = (request: HttpRequest) => Promise<HttpReply>;

/** RFC 9457 problem details; `code` is stable and what programs test. */
export const problem = (
  status: number,
  code: string,
  detail: string,
  more: Readonly<Record<string, unknown>> = {},
  headers: Readonly<Record<string, string>> = {},
): HttpReply => ({
  status,
  headers: { 'content-type': 'application/problem+json', ...headers },
  body: { type: 'about:blank', title: code, status, code, detail, ...more },
});

/** As Node gives them. */
export type FrameworkHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/** What the framework hands to a function: the part of Express that we use. */
interface FrameworkRequest {
  readonly method: string;
  readonly originalUrl: string;
  readonly headers: FrameworkHeaders;
  readonly rawBody?: Uint8Array;
  readonly socket?: { readonly remoteAddress?: string | undefined };
}
interface FrameworkResponse {
  status(code: number): unknown;
  setHeader(name: string, value: string): unknown;
  end(body?: string): unknown;
}

export const headersOf = (headers: FrameworkHeaders): HttpRequest['headers'] =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      typeof value === 'string' ? value : value?.join(', '),
    ]),
  );

const toRequest = (request: FrameworkRequest): HttpRequest => {
  const [path = '/', ...query] = request.originalUrl.split('?');
  return {
    method: request.method,
    path,
    query: new URLSearchParams(query.join('?')),
    headers: headersOf(request.headers),
    body: request.rawBody ?? new Uint8Array(),
    ...(request.socket?.remoteAddress ? { peer: request.socket.remoteAddress } : {}),
  };
};

/** Sends a reply; objects become JSON. */
export const sendReply = (response: FrameworkResponse, reply: HttpReply): void => {
  response.status(reply.status);
  const headers = {
    ...(reply.body === undefined ? {} : { 'content-type': 'application/json' }),
    ...reply.headers,
  };
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  response.end(reply.body === undefined ? undefined : JSON.stringify(reply.body));
};

/** An error that a handler let through: an outage of ours is 503 with `Retry-After`, anything else is a fault of ours. */
export const replyToError = (error: unknown): HttpReply =>
  hasCode(error, 'Transient', 'QuotaExceeded', 'Conflict')
    ? problem(
        503,
        'Unavailable',
        'A service that this one needs did not answer. Try again.',
        {},
        { 'retry-after': '2' },
      )
    : problem(500, 'Internal', 'The request failed for a reason of ours. It was logged.');

/** A handler as the framework calls it. Errors are logged here, once, with their chain. */
export const toFramework =
  (handler: HttpHandler, log: Log) =>
  async (request: FrameworkRequest, response: FrameworkResponse): Promise<void> => {
    try {
      sendReply(response, await handler(toRequest(request)));
    } catch (error) {
      log.error(`${request.method} request failed`, error);
      sendReply(response, replyToError(error));
    }
  };

/** Parses a JSON body. Throws `InvalidSpec` when it is none. */
export const parseJson = (body: Uint8Array): unknown => {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch (cause) {
    throw new SystemError('InvalidSpec', 'The body is not valid JSON in UTF-8.', { cause });
  }
};
