/** Counts what a database would bill, at the border between discovery and its stores. */

import type { IdempotencyStore } from '#shared/firestore/idempotency.ts';
import type { LeaseStore } from '#shared/firestore/leases.ts';
import type { RecordStore } from '#shared/firestore/records.ts';
import type { ViewStore } from '#shared/firestore/views.ts';

export interface Counts {
  /** Documents read by calls on leases; a query reads at least one. */
  reads: number;
  writes: number;
  /** Calls that led to those. */
  calls: number;
  /** Commits that met another one. */
  conflicts: number;
  /** Documents read for the picture of the fleet, which all requests of an instance share. */
  fleetReads: number;
}

export const noCounts = (): Counts => ({ reads: 0, writes: 0, calls: 0, conflicts: 0, fleetReads: 0 });

export const difference = (after: Counts, before: Counts): Counts => ({
  reads: after.reads - before.reads,
  writes: after.writes - before.writes,
  calls: after.calls - before.calls,
  conflicts: after.conflicts - before.conflicts,
  fleetReads: after.fleetReads - before.fleetReads,
});

const atLeastOne = (documents: number): number => Math.max(1, documents);

const found = (result: { readonly found: readonly unknown[] }): number => atLeastOne(result.found.length);

export const countingLeases = (store: LeaseStore, counts: Counts): LeaseStore => {
  const noted =
    <A extends readonly unknown[], R>(call: (...args: A) => Promise<R>, reads: (result: R) => number) =>
    async (...args: A): Promise<R> => {
      counts.calls += 1;
      const result = await call(...args);
      counts.reads += reads(result);
      return result;
    };
  return {
    ...store,
    read: noted(
      (uid: string) => store.read(uid),
      () => 1,
    ),
    free: noted((now: number) => store.free(now), found),
    readMany: noted((uids: readonly string[]) => store.readMany(uids), found),
    all: async () => {
      const all = await store.all();
      counts.fleetReads += atLeastOne(all.found.length);
      return all;
    },
    commit: async (...args) => {
      counts.calls += 1;
      try {
        const version = await store.commit(...args);
        counts.writes += 1 + args[3].length;
        return version;
      } catch (error) {
        counts.conflicts += 1;
        throw error;
      }
    },
  };
};

export const countingIdempotency = (store: IdempotencyStore, counts: Counts): IdempotencyStore => ({
  ...store,
  read: async (ids) => {
    counts.reads += ids.length;
    return store.read(ids);
  },
});

export const countingFleet = (
  records: RecordStore,
  views: ViewStore,
  db: FirestoreCount,
  counts: Counts,
): { readonly records: RecordStore; readonly views: ViewStore } => ({
  records: {
    ...records,
    changedSince: async (...args) => {
      const selection = await records.changedSince(...args);
      counts.fleetReads += atLeastOne(selection.records.length);
      return selection;
    },
  },
  views: {
    read: async (installation) => {
      counts.fleetReads += atLeastOne(await db.views());
      return views.read(installation);
    },
  },
});

/** How many view documents there are. */
export interface FirestoreCount {
  views(): Promise<number>;
}
