/** What the page on costs rests on: what passes between a client and a database is counted as it is billed. */

import { connect, constants, createServer } from 'node:http2';

import { expect, test } from 'vitest';

import { startMeter } from '#test/bench/cost/meter.ts';

/** A protobuf field with content, whose length fits into one byte. */
const field = (number: number, content: Buffer | string): Buffer => {
  const bytes = Buffer.from(content);
  return Buffer.concat([Buffer.from([number * 8 + 2, bytes.length]), bytes]);
};
const frame = (...fields: readonly Buffer[]): Buffer => {
  const message = Buffer.concat(fields);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
};

const FIRESTORE = '/google.firestore.v1.Firestore';
const WRITE = field(2, field(1, 'document'));
const DELETE = field(2, field(2, 'name'));
const ANSWERS: Readonly<Record<string, readonly Buffer[]>> = {
  [`${FIRESTORE}/RunQuery`]: [frame(field(1, 'a')), frame(field(1, 'b')), frame(field(3, 'readTime'))],
  [`${FIRESTORE}/BatchGetDocuments`]: [frame(field(1, 'a')), frame(field(2, 'missing'))],
};

/** Answers each call with its frames, cut where they should not be. */
const startServer = async () => {
  const server = createServer();
  server.on('stream', (stream, { ':path': path = '' }) => {
    stream.resume();
    stream.once('end', () => {
      stream.respond({ ':status': 200 }, { waitForTrailers: true });
      for (const byte of Buffer.concat([...(ANSWERS[path] ?? [])])) stream.write(Buffer.from([byte]));
      stream.end();
    });
    stream.once('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  return { server, host: `127.0.0.1:${typeof address === 'object' && address ? address.port : 0}` };
};

test('documents that come back, empty queries, writes, deletions and messages are counted, and all else passes', async () => {
  const meter = await startMeter();
  const { server, host } = await startServer();
  const client = connect(`http://${meter.host}`);
  const call = (path: string, request: Buffer): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const stream = client.request({ ':path': path, ':method': constants.HTTP2_METHOD_POST });
      let trailers: unknown;
      stream.once('trailers', (found: unknown) => {
        trailers = found;
      });
      stream.resume();
      stream.once('error', reject);
      stream.once('close', () => resolve(trailers));
      stream.write(request.subarray(0, 3));
      stream.end(request.subarray(3));
    });
  const first = call(`${FIRESTORE}/RunQuery`, frame(field(1, 'parent')));
  meter.to(host);
  expect(await first).toMatchObject({ 'grpc-status': '0' });
  await call(`${FIRESTORE}/BatchGetDocuments`, frame(field(2, 'x')));
  await call(`${FIRESTORE}/RunAggregationQuery`, frame(field(1, 'nothing comes back')));
  await call(`${FIRESTORE}/Commit`, frame(field(1, 'database'), WRITE, DELETE, WRITE));
  await call('/google.pubsub.v1.Publisher/Publish', frame(field(1, 'topic'), field(2, 'a'), field(2, 'b')));
  expect(meter.bill).toEqual({ reads: 5, writes: 2, deletes: 1, messages: 2 });
  client.close();
  server.close();
  await meter.stop();
});
