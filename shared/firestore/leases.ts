/** The lease documents `leases/{uid}`: read whole, written by compare-and-swap. The gate is read here and never written. */

import { createHash } from 'node:crypto';

import type { DocumentSnapshot, Firestore, Query, Timestamp } from '@google-cloud/firestore';
import { z } from 'zod';

import { SystemError } from '#shared/app/errors.ts';
import type { LeaseDocument } from '#shared/domain/lease.ts';

import { firestoreCall } from './client.ts';
import type { IdempotencyEntry, IdempotencyStore } from './idempotency.ts';
import { leasesText, toText } from './lease-codec.ts';
import { gateSchema } from './record-schema.ts';
import type { Version } from './records.ts';
import type { ServerTime } from './server-time.ts';

const documentSchema = z
  .object({
    gate: gateSchema,
    freeAt: z.number(),
    leases: leasesText,
    holders: z.array(z.string()),
  })
  .transform(({ leases, ...rest }): LeaseDocument => ({ ...rest, ...leases }));

export interface StoredLeases {
  readonly document: LeaseDocument;
  readonly version: Version;
}

/** What a query found; one document that cannot be read hides no other. */
export interface LeaseSelection {
  readonly found: readonly StoredLeases[];
  /** UIDs of documents that are there but not readable. */
  readonly unreadable: readonly string[];
}

/** The index entry of a lease's holder: what a holder finds its own leases by. */
export const holderKey = (caller: string, holder: string): string =>
  createHash('sha256')
    .update(JSON.stringify([caller, holder]))
    .digest('hex');

const holdersOf = ({ leases }: LeaseDocument): readonly string[] => [
  ...new Set(Object.values(leases).map(({ caller, holder }) => holderKey(caller, holder))),
];

const isSame = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((each, index) => each === b[index]);

/** Server milliseconds of a version, rounded down. */
export const versionTime = ({ updateTime }: Version): number => updateTime.toMillis();

const isNewer = (a: Timestamp, b: Timestamp): boolean =>
  a.seconds === b.seconds ? a.nanoseconds > b.nanoseconds : a.seconds > b.seconds;

/** The later of two versions of one document. */
export const newest = (
  a: StoredLeases | undefined,
  b: StoredLeases | undefined,
): StoredLeases | undefined => {
  if (!a || !b) return a ?? b;
  return isNewer(b.version.updateTime, a.version.updateTime) ? b : a;
};

const stored = (snapshot: DocumentSnapshot): StoredLeases | undefined => {
  const parsed = documentSchema.safeParse(snapshot.data());
  return parsed.success && snapshot.updateTime
    ? { document: parsed.data, version: { updateTime: snapshot.updateTime } }
    : undefined;
};

const selectionOf = (snapshots: readonly DocumentSnapshot[]): LeaseSelection => {
  const read = snapshots.map((doc) => ({ uid: doc.id, stored: stored(doc) }));
  return {
    found: read.flatMap((entry) => entry.stored ?? []),
    unreadable: read.filter((entry) => !entry.stored).map(({ uid }) => uid),
  };
};

export type LeaseStore = ReturnType<typeof leaseStore>;

export const leaseStore = (db: Firestore, time: ServerTime, idempotency: IdempotencyStore) => {
  const leases = db.collection('leases');

  const select = async (what: string, query: Query): Promise<LeaseSelection> => {
    const snapshot = await firestoreCall(db, what, () => query.get());
    time.observe(snapshot.readTime);
    return selectionOf(snapshot.docs);
  };

  return {
    /** `undefined` when there is none: no Proxy with this UID was ever published, or it has been swept. */
    async read(uid: string): Promise<StoredLeases | undefined> {
      const snapshot = await firestoreCall(db, `read leases ${uid}`, () => leases.doc(uid).get());
      time.observe(snapshot.readTime);
      if (!snapshot.exists) return undefined;
      const found = stored(snapshot);
      if (!found) throw new SystemError('InvalidSpec', `Firestore: leases ${uid} are not readable`);
      return found;
    },

    /** Those of `uids` that are there; one read each. */
    async readMany(uids: readonly string[]): Promise<LeaseSelection> {
      if (uids.length === 0) return { found: [], unreadable: [] };
      const snapshots = await firestoreCall(db, 'read many leases', () =>
        db.getAll(...uids.map((uid) => leases.doc(uid))),
      );
      return selectionOf(snapshots.filter(({ exists }) => exists));
    },

    /**
     * Replaces everything but the gate, with the entries of granted requests, if the document is still at the version of
     * `before`; returns what is stored then. Throws `Conflict` when it is not or when an entry exists, but also when the
     * library repeated a commit that had gone through: after any error the caller reads again.
     */
    async commit(
      uid: string,
      before: StoredLeases,
      next: LeaseDocument,
      entries: readonly IdempotencyEntry[],
    ): Promise<StoredLeases> {
      const document = { ...next, holders: holdersOf(next) };
      const { freeAt, holders } = document;
      const batch = db.batch();
      // Indexed fields only when they change: each costs the database a rewritten index.
      batch.update(
        leases.doc(uid),
        {
          leases: toText(document),
          ...(freeAt === before.document.freeAt ? {} : { freeAt }),
          ...(isSame(holders, before.document.holders) ? {} : { holders }),
        },
        { lastUpdateTime: before.version.updateTime },
      );
      for (const entry of entries) idempotency.addTo(batch, entry, time.now());
      const [result] = await firestoreCall(db, `commit leases ${uid}`, () => batch.commit());
      if (!result) throw new SystemError('Transient', 'Firestore: a commit without a result');
      time.observe(result.writeTime);
      return { document, version: { updateTime: result.writeTime } };
    },

    /** Every lease document, tombstones included. */
    all: (): Promise<LeaseSelection> => select('query leases', leases),

    /** Documents whose gate is open and that may have a free slot at `now` (server milliseconds). */
    free: (now: number): Promise<LeaseSelection> =>
      select('query free slots', leases.where('gate.open', '==', true).where('freeAt', '<=', now)),

    /** Documents with live leases of one holder (`holderKey`). */
    heldBy: (key: string): Promise<LeaseSelection> =>
      select('query leases of a holder', leases.where('holders', 'array-contains', key)),
  };
};
