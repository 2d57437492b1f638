/** Removes tombstones with their lease documents, once nothing refers to them any more. */

import type { Firestore } from '@google-cloud/firestore';

import { hasCode } from '#shared/app/errors.ts';

import { firestoreCall } from './client.ts';
import type { StoredRecord } from './records.ts';

/**
 * Deletes the given tombstones, each under the version that was read; one that was written since, or that is no tombstone,
 * stays. Returns the UIDs that were swept.
 */
export const sweepTombstones = async (
  db: Firestore,
  stored: readonly StoredRecord[],
): Promise<readonly string[]> => {
  const swept: string[] = [];
  for (const { record, version } of stored) {
    if (!record.gone) continue;
    const { uid } = record.ref;
    const batch = db.batch();
    batch.delete(db.collection('proxies').doc(uid), { lastUpdateTime: version.updateTime });
    batch.delete(db.collection('leases').doc(uid));
    try {
      await firestoreCall(db, `sweep tombstone ${uid}`, () => batch.commit());
      swept.push(uid);
    } catch (error) {
      if (!hasCode(error, 'Conflict', 'NotFound')) throw error;
    }
  }
  return swept;
};
