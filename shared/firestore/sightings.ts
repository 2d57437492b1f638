/**
 * What gc has seen before, `sightings/{sha256 of installation and key}`: written once, when it is first seen, and removed
 * when it is no longer so. A TTL policy on `expireAt` cleans up after an installation that is gone.
 */

import { createHash } from 'node:crypto';

import { Timestamp, type DocumentReference, type Firestore } from '@google-cloud/firestore';

import { hasCode } from '#shared/app/errors.ts';

import { chunks } from './chunks.ts';
import { firestoreCall } from './client.ts';
import { SCAN_DEADLINE_MS } from './deadline.ts';

const TTL_MS = 7 * 24 * 60 * 60 * 1000;

/** Documents in one commit; Firestore takes 500. */
const BATCH = 400;

export type SightingStore = ReturnType<typeof sightingStore>;

export const sightingStore = (db: Firestore, installation: string) => {
  const collection = db.collection('sightings');
  const document = (key: string): DocumentReference =>
    collection.doc(createHash('sha256').update(`${installation}\n${key}`).digest('hex'));

  const create = async (key: string, now: number): Promise<void> => {
    try {
      await firestoreCall(db, 'record a sighting', () =>
        document(key).create({
          installation,
          key,
          firstSeenAt: now,
          expireAt: Timestamp.fromMillis(now + TTL_MS),
        }),
      );
    } catch (error) {
      // Another run saw it first, and earlier is what counts.
      if (!hasCode(error, 'Conflict')) throw error;
    }
  };

  return {
    /** When each thing was first seen (milliseconds), by its key. */
    async all(): Promise<ReadonlyMap<string, number>> {
      const { docs } = await firestoreCall(
        db,
        'query sightings',
        () => collection.where('installation', '==', installation).get(),
        SCAN_DEADLINE_MS,
      );
      return new Map(
        docs.flatMap((snapshot) => {
          const key: unknown = snapshot.get('key');
          const firstSeenAt: unknown = snapshot.get('firstSeenAt');
          return typeof key === 'string' && typeof firstSeenAt === 'number' ? [[key, firstSeenAt]] : [];
        }),
      );
    },

    /** Records first sightings; a key that is there already keeps its time. */
    async add(keys: readonly string[], now: number): Promise<void> {
      for (const some of chunks(keys, BATCH)) await Promise.all(some.map((key) => create(key, now)));
    },

    async remove(keys: readonly string[]): Promise<void> {
      for (const some of chunks(keys, BATCH)) {
        const batch = db.batch();
        for (const key of some) batch.delete(document(key));
        await firestoreCall(db, 'remove sightings', () => batch.commit());
      }
    },
  };
};
