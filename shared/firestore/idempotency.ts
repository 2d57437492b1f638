/** Requests that were granted under an `Idempotency-Key`: `idempotency/{sha256(caller, key)}`, kept for 24 hours. */

import { createHash } from 'node:crypto';

import { Timestamp, type DocumentReference, type Firestore, type WriteBatch } from '@google-cloud/firestore';
import { z } from 'zod';

import { firestoreCall } from './client.ts';
import type { Version } from './records.ts';

export const REMEMBERED_MS = 24 * 60 * 60 * 1_000;

/** What a granted request leaves behind; `id` names its document, `bodyHash` tells another request under the same key. */
export interface IdempotencyEntry {
  readonly id: string;
  readonly bodyHash: string;
  readonly leaseId: string;
}

/** An entry that is stored but no longer remembered, or not readable. */
export interface OverEntry {
  readonly id: string;
  readonly version: Version;
}

export interface IdempotencyRead {
  readonly remembered: ReadonlyMap<string, IdempotencyEntry>;
  readonly over: readonly OverEntry[];
}

const schema = z.object({
  bodyHash: z.string(),
  leaseId: z.string(),
  // The field of the TTL policy, which deletes late: until then the code has to look at it.
  expireAt: z.instanceof(Timestamp),
});

const sha256 = (parts: readonly string[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('hex');

export const idempotencyId = (caller: string, key: string): string => sha256([caller, key]);
export const bodyHash = (canonicalBody: string): string => sha256([canonicalBody]);

export type IdempotencyStore = ReturnType<typeof idempotencyStore>;

export const idempotencyStore = (db: Firestore) => {
  const collection = db.collection('idempotency');
  const references = (ids: readonly string[]): readonly DocumentReference[] =>
    ids.map((id) => collection.doc(id));

  return {
    /** What is stored under `ids`. An entry is remembered until its 24 hours are over by the server's clock. */
    async read(ids: readonly string[]): Promise<IdempotencyRead> {
      const remembered = new Map<string, IdempotencyEntry>();
      const over: OverEntry[] = [];
      if (ids.length === 0) return { remembered, over };
      const snapshots = await firestoreCall(db, 'read idempotency keys', () => db.getAll(...references(ids)));
      for (const snapshot of snapshots) {
        const { id, exists, updateTime, readTime } = snapshot;
        const parsed = schema.safeParse(snapshot.data());
        if (parsed.success && parsed.data.expireAt.toMillis() > readTime.toMillis()) {
          const { bodyHash: hash, leaseId } = parsed.data;
          remembered.set(id, { id, bodyHash: hash, leaseId });
        } else if (exists && updateTime) {
          over.push({ id, version: { updateTime } });
        }
      }
      return { remembered, over };
    },

    /** Removes entries whose time is over, so that their keys can be used again before the TTL policy gets to them. */
    async forget(entries: readonly OverEntry[]): Promise<void> {
      const batch = db.batch();
      for (const { id, version } of entries) {
        batch.delete(collection.doc(id), { lastUpdateTime: version.updateTime });
      }
      await firestoreCall(db, 'forget idempotency keys', () => batch.commit());
    },

    /** Adds an entry to the commit of its lease: both are stored or neither is. */
    addTo(batch: WriteBatch, entry: IdempotencyEntry, now: number): void {
      batch.create(collection.doc(entry.id), {
        bodyHash: entry.bodyHash,
        leaseId: entry.leaseId,
        expireAt: Timestamp.fromMillis(now + REMEMBERED_MS),
      });
    },
  };
};
