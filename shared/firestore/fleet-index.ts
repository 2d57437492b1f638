/**
 * The index of all records, `fleet/{installation}-{n}`, as of one server time. With the records that changed since, it is
 * what a query for all of them would have found, at a few reads instead of one for each.
 *
 * It rests on two things: every write of a record sets `changedAt`, and only a sweep by gc removes one. Where a person does
 * either by hand, the complete query that is made once a day anyway puts it right; until then, what is missing here can at
 * most hold a machine back, or be found by the live reads that come before each deletion.
 */

import {
  Timestamp,
  type CollectionReference,
  type Firestore,
  type QuerySnapshot,
} from '@google-cloud/firestore';
import { z } from 'zod';

import { hasCode } from '#shared/app/errors.ts';

import { chunks } from './chunks.ts';
import { firestoreCall } from './client.ts';
import { packFleet, unpackFleet, type IndexedRecord, type IndexPart } from './fleet-codec.ts';
import type { RecordStore, Selection } from './records.ts';

/** When the index is read beside what, and written anew. */
export interface IndexLimits {
  /** How far a record's `changedAt` may lie before the moment at which its write can be seen. Milliseconds. */
  readonly marginMs: number;
  /** More changes than this are not read again by every run: the index is written anew. */
  readonly maxChanges: number;
  /** Fewer changes than that are read again for this long. */
  readonly refreshAfterMs: number;
  /** How often all records are read, whatever the index says. */
  readonly scanEveryMs: number;
}

export const INDEX_LIMITS: IndexLimits = {
  marginMs: 30_000,
  maxChanges: 20,
  refreshAfterMs: 5 * 60_000,
  scanEveryMs: 24 * 3_600_000,
};

/** Firestore takes 10 MiB in one commit. */
const DOCUMENTS_PER_COMMIT = 10;

/** All records of the installation as of `readTime` (server milliseconds). */
export interface Fleet {
  readonly records: readonly IndexedRecord[];
  /** UIDs of records that are there but cannot be read. */
  readonly unreadable: readonly string[];
  readonly readTime: number;
  /** Where it comes from, for `save`. */
  readonly basis: Basis;
}

interface Basis {
  /** Server milliseconds of the newest complete query. */
  readonly scannedAt: number;
  /** Server milliseconds of the index that was read; 0 = none that could be used. */
  readonly indexedAt: number;
  /** Records that were read beside it. */
  readonly changes: number;
  /** All documents that there were, usable or not: only they may be replaced. */
  readonly documents: ReadonlyMap<string, Timestamp>;
}

const schema = z.object({
  /** Random, the same in every document of one index. */
  edition: z.string(),
  readAt: z.instanceof(Timestamp),
  scannedAt: z.number(),
  of: z.int().min(1),
  data: z.instanceof(Uint8Array),
});

interface Part {
  readonly id: string;
  readonly content: Readonly<Record<string, unknown>>;
}

interface Index {
  readonly records: ReadonlyMap<string, IndexedRecord>;
  readonly unreadable: ReadonlySet<string>;
  readonly readAt: number;
  readonly scannedAt: number;
}

/** `undefined` when it is not whole: parts of two would be neither. */
const indexOf = ({ docs }: QuerySnapshot): Index | undefined => {
  const parts = docs.flatMap((doc) => schema.safeParse(doc.data()).data ?? []);
  const [first] = parts;
  if (!first || parts.length !== docs.length) return undefined;
  const same = parts.every(({ of, edition }) => of === docs.length && edition === first.edition);
  const contents = parts.flatMap(({ data }) => unpackFleet(data) ?? []);
  if (!same || contents.length !== parts.length) return undefined;
  return {
    records: new Map(
      contents.flatMap(({ records }) => records.map((indexed) => [indexed.record.ref.uid, indexed])),
    ),
    unreadable: new Set(contents.flatMap(({ unreadable }) => unreadable)),
    readAt: first.readAt.toMillis(),
    scannedAt: first.scannedAt,
  };
};

const indexed = ({ records }: Selection): ReadonlyMap<string, IndexedRecord> =>
  new Map(
    records.map(({ record, version }) => [
      record.ref.uid,
      { record: { ...record, labels: {} }, updatedAt: version.updateTime.toMillis() },
    ]),
  );

/** What changed counts, in both directions: readable or not. */
const merged = (index: Index, changed: Selection): Pick<Fleet, 'records' | 'unreadable'> => {
  const newer = indexed(changed);
  const records = new Map([...index.records, ...newer]);
  const unreadable = new Set([...index.unreadable, ...changed.unreadable]);
  for (const uid of newer.keys()) unreadable.delete(uid);
  for (const uid of unreadable) records.delete(uid);
  return { records: [...records.values()], unreadable: [...unreadable] };
};

const isWorthWriting = ({ basis, readTime }: Fleet, removed: number, limits: IndexLimits): boolean =>
  removed > 0 ||
  basis.indexedAt === 0 ||
  basis.changes > limits.maxChanges ||
  (basis.changes > 0 && readTime - basis.indexedAt > limits.refreshAfterMs);

const without = ({ records, unreadable }: Fleet, removed: ReadonlySet<string>): IndexPart => ({
  records: records.filter(({ record }) => !removed.has(record.ref.uid)),
  unreadable: unreadable.filter((uid) => !removed.has(uid)),
});

/** One that is cut short is not whole, and no run will use it. */
const replaceParts = async (
  collection: CollectionReference,
  documents: Basis['documents'],
  parts: readonly Part[],
): Promise<void> => {
  const ids = new Set(parts.map(({ id }) => id));
  const extra = [...documents.keys()].filter((id) => !ids.has(id));
  const [first = [], ...rest] = chunks(parts, DOCUMENTS_PER_COMMIT);
  for (const some of [first, ...rest]) {
    const batch = collection.firestore.batch();
    for (const { id, content } of some) {
      const lastUpdateTime = documents.get(id);
      if (lastUpdateTime) batch.update(collection.doc(id), content, { lastUpdateTime });
      else batch.create(collection.doc(id), content);
    }
    if (some === first) for (const id of extra) batch.delete(collection.doc(id));
    await firestoreCall(collection.firestore, 'write the fleet index', () => batch.commit());
  }
};

export type FleetIndex = ReturnType<typeof fleetIndex>;

export const fleetIndex = (
  db: Firestore,
  records: Pick<RecordStore, 'all' | 'changedSince'>,
  installation: string,
  limits: IndexLimits = INDEX_LIMITS,
) => {
  const collection = db.collection('fleet');

  const scan = async (documents: Basis['documents']): Promise<Fleet> => {
    const all = await records.all(installation);
    const { unreadable, readTime } = all;
    const basis = { scannedAt: readTime, indexedAt: 0, changes: 0, documents };
    return { records: [...indexed(all).values()], unreadable, readTime, basis };
  };

  return {
    /** Every record, tombstones included. */
    async read(): Promise<Fleet> {
      const snapshot = await firestoreCall(db, 'read the fleet index', () =>
        collection.where('installation', '==', installation).get(),
      );
      const documents = new Map(snapshot.docs.map(({ id, updateTime }) => [id, updateTime]));
      const index = indexOf(snapshot);
      const now = snapshot.readTime.toMillis();
      if (!index || index.readAt > now || now - index.scannedAt > limits.scanEveryMs) return scan(documents);
      const changed = await records.changedSince(installation, index.readAt - limits.marginMs);
      const changes = changed.records.length + changed.unreadable.length;
      const basis = { scannedAt: index.scannedAt, indexedAt: index.readAt, changes, documents };
      return { ...merged(index, changed), readTime: changed.readTime, basis };
    },

    /**
     * Writes the index if that saves reads, without the records in `removed`, which exist no more. What another run has
     * written since `fleet` was read stays: it may lack what has been removed since.
     */
    async save(fleet: Fleet, removed: readonly string[]): Promise<void> {
      if (!isWorthWriting(fleet, removed.length, limits)) return;
      const parts = packFleet(without(fleet, new Set(removed)));
      const common = {
        installation,
        edition: collection.doc().id,
        readAt: Timestamp.fromMillis(fleet.readTime),
        scannedAt: fleet.basis.scannedAt,
        of: parts.length,
      };
      try {
        await replaceParts(
          collection,
          fleet.basis.documents,
          parts.map((data, index) => ({ id: `${installation}-${index}`, content: { ...common, data } })),
        );
      } catch (error) {
        if (!hasCode(error, 'Conflict', 'NotFound')) throw error;
      }
    },
  };
};
