/** Between a client and an emulator: passes everything on, and counts what Google bills for. */

import {
  connect,
  constants,
  createServer,
  type ClientHttp2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';

import { fieldsOf, makeFrames } from './frames.ts';

export interface Bill {
  /** Documents, and one for a query that found none. */
  reads: number;
  /** Documents, deletions left out. */
  writes: number;
  deletes: number;
  /** Of Pub/Sub. */
  messages: number;
}

export const noBill = (): Bill => ({ reads: 0, writes: 0, deletes: 0, messages: 0 });

export const since = (now: Bill, before: Bill): Bill => ({
  reads: now.reads - before.reads,
  writes: now.writes - before.writes,
  deletes: now.deletes - before.deletes,
  messages: now.messages - before.messages,
});

export interface Meter {
  /** `host:port`, for a client. */
  readonly host: string;
  readonly bill: Bill;
  /** Where it passes things on to; what comes before waits. */
  to(upstream: string): void;
  stop(): Promise<void>;
}

/** Numbers of fields in google.firestore.v1 and google.pubsub.v1. */
const REQUESTED = 2;
const DELETE = 2;
const FOUND: Readonly<Record<string, readonly number[]>> = {
  BatchGetDocuments: [1, 2],
  RunQuery: [1],
  RunAggregationQuery: [1],
};

const billRequest = (method: string, message: Uint8Array, bill: Bill): void => {
  const parts = fieldsOf(message).filter(({ number }) => number === REQUESTED);
  if (method === 'Publish') bill.messages += parts.length;
  if (method !== 'Commit' && method !== 'BatchWrite') return;
  for (const { content } of parts)
    if (fieldsOf(content).some(({ number }) => number === DELETE)) bill.deletes += 1;
    else bill.writes += 1;
};

/** One call, both ways, with the counting in between. */
const pass = (
  client: ServerHttp2Stream,
  { ':path': path = '', ...headers }: IncomingHttpHeaders,
  session: ClientHttp2Session,
  bill: Bill,
): void => {
  const method = path.split('/').at(-1) ?? '';
  const server = session.request({ ...headers, ':path': path });
  let trailers: IncomingHttpHeaders = {};
  let documents = 0;
  const asked = makeFrames((message) => billRequest(method, message, bill));
  const answered = makeFrames((message) => {
    if (fieldsOf(message).some(({ number }) => FOUND[method]?.includes(number))) documents += 1;
  });
  client.on('data', asked);
  server.on('data', answered);
  client.pipe(server);
  server.once('response', (found, flags) => {
    const endStream = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    client.respond(found, endStream ? { endStream } : { waitForTrailers: true });
    if (!endStream) server.pipe(client);
  });
  server.once('trailers', (found: IncomingHttpHeaders) => {
    trailers = found;
  });
  client.once('wantTrailers', () => client.sendTrailers(trailers));
  server.once('end', () => {
    if (FOUND[method]) bill.reads += Math.max(1, documents);
  });
  server.once('error', () => client.close(constants.NGHTTP2_INTERNAL_ERROR));
  client.once('error', () => server.close(constants.NGHTTP2_CANCEL));
  client.once('aborted', () => server.close(constants.NGHTTP2_CANCEL));
};

export const startMeter = async (): Promise<Meter> => {
  const bill = noBill();
  const { promise: upstream, resolve: connectTo } = Promise.withResolvers<string>();
  const ends = new Set<{ destroy(): void }>();
  const server = createServer();
  server.on('session', (session) => {
    ends.add(session);
    session.on('error', () => undefined);
    const there = upstream.then((host) => {
      const opened = connect(`http://${host}`);
      ends.add(opened);
      opened.on('error', () => session.destroy());
      session.once('close', () => opened.close());
      return opened;
    });
    session.on('stream', (stream, headers) => {
      void there.then((opened) => pass(stream, headers, opened, bill));
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  return {
    host: `127.0.0.1:${port}`,
    bill,
    to: connectTo,
    stop: () =>
      new Promise((resolve) => {
        for (const end of ends) end.destroy();
        server.close(() => resolve());
      }),
  };
};
