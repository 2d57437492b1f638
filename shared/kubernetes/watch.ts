/** One watch of one kind of object, as an iteration that ends when the watch does. */

import { z } from 'zod';

import { SystemError } from '#shared/app/errors.ts';

import type { ApiStream, Connection } from './connection.ts';
import { errorOfReply, errorOfTransport, jsonOf } from './failure.ts';
import type { Collection } from './pages.ts';

export type WatchEvent<T> =
  | { readonly kind: 'changed'; readonly object: T }
  | { readonly kind: 'deleted'; readonly object: T }
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
  z.object({ type: z.enum(['ADDED', 'MODIFIED', 'DELETED']), object: z.unknown() }),
  z.object({
    type: z.literal('BOOKMARK'),
    object: z.object({ metadata: z.object({ resourceVersion: z.string().min(1) }) }),
  }),
  z.object({ type: z.literal('ERROR'), object: failure }),
]);

const eventOfError = ({ code, reason, message }: z.output<typeof failure>): WatchEvent<never> => {
  if (code === 410 || reason === 'Expired' || reason === 'Gone') return { kind: 'expired' };
  throw new SystemError('Transient', 'Kubernetes: the watch reported an error', {
    provider: { code: reason || String(code), message },
  });
};

const unreadable = (): SystemError =>
  new SystemError('Transient', 'Kubernetes: the watch sent something unreadable');

const readable = <T>(schema: z.ZodType<T>, value: unknown): T => {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw unreadable();
};

const eventOf = <T>(line: string, schema: z.ZodType<T>): WatchEvent<T> => {
  const data = readable(frame, jsonOf(line));
  if (data.type === 'ERROR') return eventOfError(data.object);
  if (data.type === 'BOOKMARK') {
    return { kind: 'bookmark', resourceVersion: data.object.metadata.resourceVersion };
  }
  const object = readable(schema, data.object);
  return { kind: data.type === 'DELETED' ? 'deleted' : 'changed', object };
};

/** Several times what etcd takes for one object, so that whatever is longer has no end that is worth waiting for. */
const MAX_LINE = 8 * 1_048_576;

/** Complete lines of a byte stream; what is left at the end was cut off and says nothing. */
const linesOf = async function* (
  chunks: AsyncIterable<Uint8Array>,
  onChunk: () => void,
): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of chunks) {
    onChunk();
    const [first = '', ...more] = decoder.decode(chunk, { stream: true }).split('\n');
    rest += first;
    if (rest.length > MAX_LINE) throw unreadable();
    for (const next of more) {
      if (rest) yield rest;
      rest = next;
    }
  }
};

const streamOf = async (
  connection: Connection,
  { path, labelSelector }: Pick<Collection<unknown>, 'path' | 'labelSelector'>,
  { namespace, resourceVersion, timeoutSeconds }: WatchOptions,
  signal: AbortSignal,
): Promise<ApiStream> =>
  connection.stream({
    method: 'GET',
    path: path(namespace),
    query: {
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion,
      timeoutSeconds: String(timeoutSeconds),
      ...(labelSelector === undefined ? {} : { labelSelector }),
    },
    signal,
  });

const eventsOf = async function* <T>(
  stream: ApiStream,
  schema: z.ZodType<T>,
  onChunk: () => void,
): AsyncGenerator<WatchEvent<T>> {
  if (stream.status === 410) {
    yield { kind: 'expired' };
    return;
  }
  if (stream.status !== 200) {
    throw errorOfReply('watch', { status: stream.status, text: await stream.text() });
  }
  for await (const line of linesOf(stream.chunks, onChunk)) yield eventOf(line, schema);
};

/**
 * Ends quietly when the server closes the watch or `signal` aborts; throws a `SystemError` for anything else, a connection
 * that fell silent included. After `expired` nothing follows.
 */
export const watchAll = async function* <T>(
  connection: Connection,
  collection: Collection<T>,
  options: WatchOptions,
): AsyncGenerator<WatchEvent<T>> {
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(), options.silenceMs);
  let stream: ApiStream | undefined;
  try {
    const signal = AbortSignal.any([options.signal, silence.signal]);
    stream = await streamOf(connection, collection, options, signal);
    yield* eventsOf(stream, collection.object, () => timer.refresh());
  } catch (cause) {
    if (!options.signal.aborted) throw errorOfTransport('watch', cause);
  } finally {
    clearTimeout(timer);
    await stream?.close();
  }
};
