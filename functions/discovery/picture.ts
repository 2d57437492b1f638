/** The fleet as this instance saw it last: what acquires choose from. The gate makes a stale choice harmless. */

import type { Clock } from '#shared/app/clock.ts';
import type { Log } from '#shared/app/log.ts';
import type { LeaseSelection, LeaseStore, StoredLeases } from '#shared/firestore/leases.ts';

export interface FleetPicture {
  /** At most `maxAgeMs` old. */
  recent(maxAgeMs: number): Promise<readonly StoredLeases[]>;
  /** Read after this call was made. */
  fresh(): Promise<readonly StoredLeases[]>;
}

/**
 * Shares one load among all who ask: who comes while one is running gets the next one, since the running one may have
 * read before what the caller has to see.
 */
export const shared = <T>(load: () => Promise<T>): (() => Promise<T>) => {
  let running: Promise<T> | undefined;
  let next: Promise<T> | undefined;
  const start = (): Promise<T> => {
    next = undefined;
    const current = load().finally(() => {
      if (running === current) running = undefined;
    });
    running = current;
    return current;
  };
  return () => {
    if (!running) return start();
    next ??= running.then(start, start);
    return next;
  };
};

/** What can be read; what cannot is logged and left out. */
export const readable = ({ found, unreadable }: LeaseSelection, log: Log): readonly StoredLeases[] => {
  if (unreadable.length > 0) log.warning('lease documents are not readable', { uids: unreadable });
  return found;
};

/** Tombstones and other installations' namespaces are not part of it. */
export const isOurs =
  (namespaces: readonly string[]) =>
  ({ document: { gate } }: StoredLeases): boolean =>
    gate.closedReason !== 'Gone' &&
    (namespaces.includes('*') || namespaces.includes(gate.proxy.ref.namespace));

export interface PictureOptions {
  readonly leases: Pick<LeaseStore, 'all'>;
  readonly namespaces: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
}

export const makePicture = ({ leases, namespaces, clock, log }: PictureOptions): FleetPicture => {
  let cached: { readonly entries: readonly StoredLeases[]; readonly at: number } | undefined;
  const fresh = shared(async () => {
    const at = clock.monotonic();
    const entries = readable(await leases.all(), log).filter(isOurs(namespaces));
    cached = { entries, at };
    return entries;
  });
  let refreshing: Promise<readonly StoredLeases[]> | undefined;
  return {
    fresh,
    recent(maxAgeMs) {
      if (cached && clock.monotonic() - cached.at <= maxAgeMs) return Promise.resolve(cached.entries);
      // Unlike `fresh`, a load that is already running will do.
      refreshing ??= fresh().finally(() => {
        refreshing = undefined;
      });
      return refreshing;
    },
  };
};
