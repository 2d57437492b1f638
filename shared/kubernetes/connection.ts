/** How a cluster is reached: the client library authenticates and sends; every request but a stream has a deadline. */

import {
  HttpMethod,
  IsomorphicFetchHttpLibrary,
  RequestContext,
  type ResponseContext,
} from '@kubernetes/client-node';

import { loadConfig, serverOf, tokensOf, type ClusterOptions } from './configuration.ts';
import { errorOfTransport, type ApiReply } from './failure.ts';

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Absolute path with encoded segments. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Sent as JSON; a PATCH is always a merge patch. */
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

/** A reply whose body is read piece by piece, over a connection of its own. */
export interface ApiStream {
  readonly status: number;
  readonly chunks: AsyncIterable<Uint8Array>;
  readonly text: () => Promise<string>;
  readonly close: () => Promise<void>;
}

export interface Connection {
  /** One request and its whole reply, whatever its status. Throws `Transient` when there is none in time. */
  send(request: ApiRequest): Promise<ApiReply>;
  /** A request whose reply has no end. Its signal is its only deadline. */
  stream(request: ApiRequest & { readonly signal: AbortSignal }): Promise<ApiStream>;
  close(): Promise<void>;
}

export const REQUEST_DEADLINE_MS = 10_000;

type Dispatcher = NonNullable<ReturnType<RequestContext['getDispatcher']>>;
type Prepare = (request: ApiRequest, signal: AbortSignal) => Promise<RequestContext>;

const httpLibrary = new IsomorphicFetchHttpLibrary();

const transmit = (context: RequestContext): Promise<ResponseContext> => httpLibrary.send(context).toPromise();

const contextOf = (server: URL, request: ApiRequest, userAgent: string): RequestContext => {
  const url = new URL(`${server.pathname.replace(/\/$/, '')}${request.path}`, server);
  for (const [name, value] of Object.entries(request.query ?? {})) url.searchParams.set(name, value);
  const context = new RequestContext(url.toString(), HttpMethod[request.method]);
  context.setHeaderParam('Accept', 'application/json');
  context.setHeaderParam('User-Agent', userAgent);
  if (request.body !== undefined) {
    const patch = request.method === 'PATCH';
    context.setHeaderParam('Content-Type', patch ? 'application/merge-patch+json' : 'application/json');
    context.setBody(JSON.stringify(request.body));
  }
  return context;
};

/** The library makes a dispatcher, and so a TLS connection, per request: one is kept until it fails. */
const keepDispatcher = () => {
  let kept: Dispatcher | undefined;
  return {
    use(context: RequestContext): Dispatcher | undefined {
      kept ??= context.getDispatcher();
      if (kept) context.setDispatcher(kept);
      return kept;
    },
    /** A connection that failed may be half-open: later requests get a new one, running ones may end on the old. */
    abandon(failed: Dispatcher | undefined): void {
      if (!failed || failed !== kept) return;
      kept = undefined;
      failed.close().catch(() => undefined);
      setTimeout(() => void failed.destroy(), REQUEST_DEADLINE_MS).unref();
    },
    async destroy(): Promise<void> {
      await kept?.destroy();
      kept = undefined;
    },
  };
};

/** Credentials come from files, programs and other servers, none of which knows of the request's deadline. */
const unlessAborted = async (work: Promise<unknown>, signal: AbortSignal): Promise<void> => {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
};

interface Sent {
  readonly context: RequestContext;
  readonly reply: ApiReply;
}

const tokenIn = (context: RequestContext): string =>
  (context.getHeaders()['Authorization'] ?? '').replace('Bearer ', '');

const openStream = async (
  prepare: Prepare,
  request: ApiRequest & { readonly signal: AbortSignal },
): Promise<ApiStream> => {
  const context = await prepare(request, request.signal);
  const close = async (): Promise<void> => context.getDispatcher()?.destroy();
  try {
    const reply = await transmit(context);
    const chunks = reply.body.stream() ?? new ReadableStream<Uint8Array>();
    return { status: reply.httpStatusCode, chunks, text: () => new Response(chunks).text(), close };
  } catch (error) {
    await close();
    throw error;
  }
};

/** Opens nothing until the first request. Throws `NotConfigured` for a configuration that can never work. */
export const openConnection = (options: ClusterOptions, userAgent: string): Connection => {
  const tokens = tokensOf(options);
  const config = loadConfig(options, tokens);
  const server = serverOf(config);
  const dispatchers = keepDispatcher();

  const prepare: Prepare = async (request, signal) => {
    const context = contextOf(server, request, userAgent);
    context.setSignal(signal);
    await unlessAborted(config.applySecurityAuthentication(context), signal);
    return context;
  };

  const sendOnce = async (request: ApiRequest, signal: AbortSignal): Promise<Sent> => {
    let dispatcher: Dispatcher | undefined;
    try {
      const context = await prepare(request, signal);
      dispatcher = dispatchers.use(context);
      const reply = await transmit(context);
      return { context, reply: { status: reply.httpStatusCode, text: await reply.body.text() } };
    } catch (cause) {
      if (!request.signal?.aborted) dispatchers.abandon(dispatcher);
      throw errorOfTransport(`${request.method} ${request.path}`, cause);
    }
  };

  return {
    async send(request) {
      const deadline = AbortSignal.timeout(REQUEST_DEADLINE_MS);
      const signal = request.signal ? AbortSignal.any([request.signal, deadline]) : deadline;
      const { context, reply } = await sendOnce(request, signal);
      if (reply.status !== 401 || !tokens) return reply;
      // Nothing was done: the token may have died before its time, and a new one tells.
      tokens.refused(tokenIn(context));
      return (await sendOnce(request, signal)).reply;
    },
    async stream(request) {
      try {
        return await openStream(prepare, request);
      } catch (cause) {
        throw errorOfTransport(`${request.method} ${request.path}`, cause);
      }
    },
    close: () => dispatchers.destroy(),
  };
};
