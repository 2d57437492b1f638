/** Counts what Firestore bills as reads, on the wire: each document that comes back, and one for a query without any. */

import { Transform, type Duplex } from 'node:stream';

import type { Firestore } from '@google-cloud/firestore';
import { z } from 'zod';

const answerSchema = z.object({
  document: z.unknown().optional(),
  found: z.unknown().optional(),
  missing: z.unknown().optional(),
});

const isDocument = (answer: unknown): boolean => {
  const { document, found, missing } = answerSchema.parse(answer);
  return [document, found, missing].some((part) => part !== undefined && part !== null);
};

export interface Bill {
  reads: number;
}

const counted = (stream: Duplex, bill: Bill): Duplex => {
  let documents = 0;
  const through = new Transform({
    objectMode: true,
    transform(answer: unknown, _encoding, done) {
      if (isDocument(answer)) documents += 1;
      done(null, answer);
    },
    flush(done) {
      bill.reads += Math.max(1, documents);
      done();
    },
  });
  stream.on('error', (error) => through.destroy(error));
  return stream.pipe(through);
};

type RequestStream = (...given: readonly unknown[]) => Promise<Duplex>;
const isRequestStream = (value: unknown): value is RequestStream => typeof value === 'function';

/** Adds to the bill whatever this client reads from now on. */
export const billReads = (db: Firestore): Bill => {
  const bill: Bill = { reads: 0 };
  const original: unknown = Reflect.get(db, 'requestStream');
  if (!isRequestStream(original)) throw new Error('the client has no requestStream');
  const value: RequestStream = async (...given) => counted(await Reflect.apply(original, db, given), bill);
  Object.defineProperty(db, 'requestStream', { value });
  return bill;
};
