/** Removes tombstones with their lease documents, once nothing refers to them any more. */

import type { DocumentSnapshot, Firestore } from '@google-cloud/firestore';

import { hasCode } from '#shared/app/errors.ts';

import { chunks } from './chunks.ts';
import { firestoreCall } from './client.ts';

/** A tombstone as it was judged: of its write at `updatedAt` (server milliseconds). */
export interface Tombstone {
  readonly uid: string;
  readonly updatedAt: number;
}

/** Swept at once; what is left over is found again by the next run. */
const MAX_SWEPT = 500;
const WIDTH = 25;

const sweepOne = async (
  db: Firestore,
  { uid, updatedAt }: Tombstone,
  snapshot: DocumentSnapshot,
): Promise<boolean> => {
  if (!snapshot.exists || !snapshot.updateTime) return true;
  if (snapshot.get('gone') !== true || snapshot.updateTime.toMillis() !== updatedAt) return false;
  const batch = db.batch();
  batch.delete(snapshot.ref, { lastUpdateTime: snapshot.updateTime });
  batch.delete(db.collection('leases').doc(uid));
  try {
    await firestoreCall(db, `sweep tombstone ${uid}`, () => batch.commit());
    return true;
  } catch (error) {
    if (!hasCode(error, 'Conflict', 'NotFound')) throw error;
    return false;
  }
};

/**
 * Deletes the given tombstones, each read again and deleted under that version; one that was written since it was judged,
 * or that is no tombstone, stays. Returns the UIDs of those that are there no more, whoever removed them.
 */
export const sweepTombstones = async (
  db: Firestore,
  tombstones: readonly Tombstone[],
): Promise<readonly string[]> => {
  const absent: string[] = [];
  for (const some of chunks(tombstones.slice(0, MAX_SWEPT), WIDTH)) {
    const snapshots = await firestoreCall(db, 'read tombstones', () =>
      db.getAll(...some.map(({ uid }) => db.collection('proxies').doc(uid))),
    );
    const results = await Promise.all(
      some.map(async (tombstone, index) => {
        const snapshot = snapshots[index];
        return snapshot && (await sweepOne(db, tombstone, snapshot)) ? [tombstone.uid] : [];
      }),
    );
    absent.push(...results.flat());
  }
  return absent;
};
