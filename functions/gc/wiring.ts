/** From settings to what the handler takes. */

import { acquireLock } from '#shared/firestore/locks.ts';
import { installationStore } from '#shared/firestore/installations.ts';
import { closeFirestore, openFirestore } from '#shared/firestore/client.ts';
import { fleetIndex } from '#shared/firestore/fleet-index.ts';
import { recordStore } from '#shared/firestore/records.ts';
import { sightingStore } from '#shared/firestore/sightings.ts';
import { sweepTombstones, type Tombstone } from '#shared/firestore/sweep.ts';

/** Everything that is kept in Firestore. */
export const storesOn = (db: ReturnType<typeof openFirestore>, installation: string) => {
  const records = recordStore(db);
  return {
    records,
    fleet: fleetIndex(db, records, installation),
    sightings: sightingStore(db, installation),
    installations: installationStore(db, installation),
    lock: (holder: string, ttlMs: number) => acquireLock(db, `gc-${installation}`, holder, ttlMs),
    sweep: (tombstones: readonly Tombstone[]) => sweepTombstones(db, tombstones),
    close: () => closeFirestore(db),
  };
};

export interface StoreOptions {
  readonly projectId: string;
  readonly databaseId: string;
  readonly installation: string;
}

/** The same, over a client of its own. */
export const openStores = ({ projectId, databaseId, installation }: StoreOptions) =>
  storesOn(openFirestore({ projectId, databaseId }), installation);
