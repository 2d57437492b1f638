/** One watch of Proxies, as an iteration that ends when the watch does. */

import { z } from 'zod';

import { SystemError } from '#shared/app/errors.ts';

import type { ApiStream, Connection } from './connection.ts';
import { errorOfReply, errorOfTransport, jsonOf } from './failure.ts';
import { proxiesPath } from './proxies.ts';
import { proxySchema, type ProxyObject } from './schema.ts';

export type ProxyWatchEvent =
  | { readonly kind: 'changed'; readonly proxy: ProxyObject }
  | { readonly kind: 'deleted'; readonly proxy: ProxyObject }
  /** Nothing happened up to this version. */
  | { readonly kind: 'bookmark'; readonly resourceVersion: string }
  /** The version to continue from is no longer kept: list again. The last event of its watch. */
  | { readonly kind: 'expired' };

export interface WatchOptions {
  /** A namespace or `*`. */
  readonly namespace: string;
  readonly resourceVersion: string;
  readonly signal: AbortSignal;
  /** The server ends the watch after this time, so that a quiet one proves itself alive. */
  readonly timeoutSeconds: number;
  /** Longest silence, in milliseconds, before the connection counts as dead; more than `timeoutSeconds`. */
  readonly silenceMs: number;
}

const failure = z.object({
  code: z.number().default(0),
  reason: z.string().default(''),
  message: z.string().default(''),
});

const frame = z.discriminatedUnion('type', [
  z.object({ type: z.enum(['ADDED', 'MODIFIED', 'DELETED']), object: proxySchema }),
  z.object({
    type: z.literal('BOOKMARK'),
    object: z.object({ metadata: z.object({ resourceVersion: z.string().min(1) }) }),
  }),
  z.object({ type: z.literal('ERROR'), object: failure }),
]);

const eventOfError = ({ code, reason, message }: z.output<typeof failure>): ProxyWatchEvent => {
  if (code === 410 || reason === 'Expired' || reason === 'Gone') return { kind: 'expired' };
  throw new SystemError('Transient', 'Kubernetes: the watch reported an error', {
    provider: { code: reason || String(code), message },
  });
};

const eventOf = (line: string): ProxyWatchEvent => {
  const parsed = frame.safeParse(jsonOf(line));
  if (!parsed.success) {
    throw new SystemError('Transient', 'Kubernetes: the watch sent something unreadable');
  }
  const { data } = parsed;
  if (data.type === 'ERROR') return eventOfError(data.object);
  if (data.type === 'BOOKMARK') {
    return { kind: 'bookmark', resourceVersion: data.object.metadata.resourceVersion };
  }
  return { kind: data.type === 'DELETED' ? 'deleted' : 'changed', proxy: data.object };
};

/** Complete lines of a byte stream; what is left at the end was cut off and says nothing. */
const linesOf = async function* (
  chunks: AsyncIterable<Uint8Array>,
  onChunk: () => void,
): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of chunks) {
    onChunk();
    const pieces = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = pieces.pop() ?? '';
    yield* pieces.filter(Boolean);
  }
};

const streamOf = async (
  connection: Connection,
  { namespace, resourceVersion, timeoutSeconds }: WatchOptions,
  signal: AbortSignal,
): Promise<ApiStream> =>
  connection.stream({
    method: 'GET',
    path: proxiesPath(namespace),
    query: {
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion,
      timeoutSeconds: String(timeoutSeconds),
    },
    signal,
  });

const eventsOf = async function* (stream: ApiStream, onChunk: () => void): AsyncGenerator<ProxyWatchEvent> {
  if (stream.status === 410) {
    yield { kind: 'expired' };
    return;
  }
  if (stream.status !== 200) {
    throw errorOfReply('watch', { status: stream.status, text: await stream.text() });
  }
  for await (const line of linesOf(stream.chunks, onChunk)) yield eventOf(line);
};

/**
 * Ends quietly when the server closes the watch or `signal` aborts; throws a `SystemError` for anything else, a connection
 * that fell silent included. After `expired` nothing follows.
 */
export const watchProxies = async function* (
  connection: Connection,
  options: WatchOptions,
): AsyncGenerator<ProxyWatchEvent> {
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(), options.silenceMs);
  let stream: ApiStream | undefined;
  try {
    const signal = AbortSignal.any([options.signal, silence.signal]);
    stream = await streamOf(connection, options, signal);
    yield* eventsOf(stream, () => timer.refresh());
  } catch (cause) {
    if (!options.signal.aborted) throw errorOfTransport('watch', cause);
  } finally {
    clearTimeout(timer);
    await stream?.close();
  }
};
