/** The shape of every query that the code asks Firestore, taken from what the client would send. */

import type { Firestore } from '@google-cloud/firestore';
import { z } from 'zod';

import { systemClock } from '#shared/app/clock.ts';
import { openFirestore } from '#shared/firestore/client.ts';
import { credentialStore } from '#shared/firestore/credentials.ts';
import { fleetIndex } from '#shared/firestore/fleet-index.ts';
import { idempotencyStore } from '#shared/firestore/idempotency.ts';
import { leaseStore } from '#shared/firestore/leases.ts';
import { recordStore } from '#shared/firestore/records.ts';
import { readQueue } from '#shared/firestore/replacements.ts';
import { serverTime } from '#shared/firestore/server-time.ts';
import { sightingStore } from '#shared/firestore/sightings.ts';
import { viewStore } from '#shared/firestore/views.ts';

export interface QueryShape {
  readonly collection: string;
  /** Each field with the client's name of its operator. */
  readonly filters: readonly (readonly [field: string, operator: string])[];
  readonly order: readonly string[];
}

const fieldFilter = z.object({
  fieldFilter: z.object({ field: z.object({ fieldPath: z.string() }), op: z.string() }),
});
const filter = z.union([
  fieldFilter,
  z.object({ compositeFilter: z.object({ filters: z.array(fieldFilter) }) }),
]);
const query = z.object({
  from: z.tuple([z.object({ collectionId: z.string() })]),
  where: filter.nullish(),
  orderBy: z.array(z.object({ field: z.object({ fieldPath: z.string() }) })).default([]),
});
const request = z.union([
  z.object({ structuredQuery: query }).transform((one) => one.structuredQuery),
  z
    .object({ structuredAggregationQuery: z.object({ structuredQuery: query }) })
    .transform((one) => one.structuredAggregationQuery.structuredQuery),
]);

const shapeOf = (sent: unknown): QueryShape => {
  const { from, where, orderBy } = request.parse(sent);
  const filters = where ? ('compositeFilter' in where ? where.compositeFilter.filters : [where]) : [];
  return {
    collection: from[0].collectionId,
    filters: filters.map(({ fieldFilter: { field, op } }) => [field.fieldPath, op] as const),
    order: orderBy.map(({ field }) => field.fieldPath).filter((field) => field !== '__name__'),
  };
};

/** INVALID_ARGUMENT, which nobody repeats. */
const REFUSED = Object.assign(new Error('nobody is asked'), { code: 3 });

const askAll = async (db: Firestore): Promise<void> => {
  const time = serverTime(systemClock);
  const records = recordStore(db);
  const leases = leaseStore(db, time, idempotencyStore(db));
  await Promise.allSettled([
    records.probed('i'),
    records.probed('i', { from: 0, to: 4 }),
    records.changedSince('i', 1),
    records.unpublished('i'),
    records.at('i', ['h']),
    records.all('i'),
    leases.all(),
    leases.free(1),
    leases.heldBy('k'),
    viewStore(db, time).read('i'),
    fleetIndex(db, records, 'i').read(),
    sightingStore(db, 'i').all(),
    credentialStore(db).idsOf('u'),
    readQueue(db, 'i', { at: 1, hash: 'h' }),
  ]);
};

/** Calls everything that queries, on a client that sends nothing. */
export const queryShapes = async (): Promise<readonly QueryShape[]> => {
  const db = openFirestore({ projectId: 'nowhere' });
  const shapes: QueryShape[] = [];
  const record = (_method: unknown, _bidirectional: unknown, sent: unknown): Promise<never> => {
    shapes.push(shapeOf(sent));
    return Promise.reject(REFUSED);
  };
  Object.defineProperty(db, 'requestStream', { value: record });
  await askAll(db);
  await db.terminate();
  return shapes;
};
