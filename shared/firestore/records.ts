/**
 * The records `proxies/{uid}` with their gates in `leases/{uid}`. A record and its gate are only ever written together:
 * the record under the version that was read, the gate by field mask, so that no withdrawal can be half done.
 */

import {
  FieldValue,
  Timestamp,
  type CollectionReference,
  type DocumentSnapshot,
  type Firestore,
  type Query,
} from '@google-cloud/firestore';

import { SystemError, hasCode } from '#shared/app/errors.ts';
import { gateOf } from '#shared/domain/gate.ts';
import { placesOf, publications, type ProxyRecord } from '#shared/domain/record.ts';
import { bucketOf, type BucketRange } from '#shared/domain/shard.ts';

import { firestoreCall } from './client.ts';
import { SCAN_DEADLINE_MS } from './deadline.ts';
import { NO_LEASES, toText } from './lease-codec.ts';
import { recordSchema } from './record-schema.ts';

/** The version that a write is judged against; opaque to callers. */
export interface Version {
  readonly updateTime: Timestamp;
}

/** A record as it was read. `readTime` is the server's clock in milliseconds. */
export interface StoredRecord {
  readonly record: ProxyRecord;
  readonly version: Version;
  readonly readTime: number;
}

/** Who is stuck is not in everybody's way, but in that of those who want the very same; and those are in nobody's. */
const queueFields = ({ replacement }: ProxyRecord): Record<'replacing' | 'stuckOn', unknown> => ({
  replacing: replacement?.stuck || replacement?.held ? null : (replacement?.at ?? null),
  stuckOn: replacement?.stuck ? (replacement.hash ?? null) : null,
});

/** Query fields beside the record itself, which is exempt from indexing. */
const documentOf = (record: ProxyRecord): Record<string, unknown> => ({
  record,
  gone: record.gone,
  installation: record.installation,
  probed: publications(record).length > 0,
  bucket: bucketOf(record.ref.uid),
  managed: record.provider !== 'External',
  ...queueFields(record),
  hosts: [...new Set(placesOf(record).map(({ host }) => host))],
  changedAt: FieldValue.serverTimestamp(),
});

const tryStored = (snapshot: DocumentSnapshot): StoredRecord | undefined => {
  const parsed = recordSchema.safeParse(snapshot.get('record'));
  return parsed.success && snapshot.updateTime
    ? {
        record: parsed.data,
        version: { updateTime: snapshot.updateTime },
        readTime: snapshot.readTime.toMillis(),
      }
    : undefined;
};

/** What a query found. One document that cannot be read hides no other, and is not taken for absent either. */
export interface Selection {
  readonly records: readonly StoredRecord[];
  /** UIDs of documents that are there but not readable. */
  readonly unreadable: readonly string[];
  /** Server milliseconds: what was committed by then was seen. */
  readonly readTime: number;
}

const select = async (what: string, query: Query): Promise<Selection> => {
  const { docs, readTime } = await firestoreCall(query.firestore, what, () => query.get(), SCAN_DEADLINE_MS);
  const records: StoredRecord[] = [];
  const unreadable: string[] = [];
  for (const snapshot of docs) {
    const read = tryStored(snapshot);
    if (read) records.push(read);
    else unreadable.push(snapshot.id);
  }
  return { records, unreadable, readTime: readTime.toMillis() };
};

/** Firestore's own bound of values in one query. */
const MAX_ALTERNATIVES = 30;

const published = (proxies: Query, installation: string, buckets?: BucketRange): Query => {
  const all = proxies.where('installation', '==', installation).where('probed', '==', true);
  return buckets ? all.where('bucket', '>=', buckets.from).where('bucket', '<', buckets.to) : all;
};

const recordQueries = (proxies: CollectionReference) => ({
  /** Every record of this installation that has a published endpoint, of some buckets or of all. */
  probed: (installation: string, buckets?: BucketRange): Promise<Selection> =>
    select('query published records', published(proxies, installation, buckets)),

  /** Records of this installation that were written after `time` (server milliseconds), tombstones included. */
  changedSince: (installation: string, time: number): Promise<Selection> =>
    select(
      'query changed records',
      proxies
        .where('installation', '==', installation)
        .where('changedAt', '>', Timestamp.fromMillis(Math.max(0, time))),
    ),

  /** Records of this installation that publish nothing, tombstones left out. */
  unpublished: (installation: string): Promise<Selection> =>
    select(
      'query unpublished records',
      proxies
        .where('installation', '==', installation)
        .where('gone', '==', false)
        .where('probed', '==', false),
    ),

  /** Records of this installation with an endpoint of a gcp machine on one of these hosts, of which the first 30 count. */
  at: async (installation: string, hosts: readonly string[]): Promise<Selection> => {
    const query = proxies.where('hosts', 'array-contains-any', hosts.slice(0, MAX_ALTERNATIVES));
    const { records, ...rest } = await select('query records by host', query);
    return { ...rest, records: records.filter(({ record }) => record.installation === installation) };
  },

  /** Every record of this installation, tombstones included. */
  all: (installation: string): Promise<Selection> =>
    select('query records', proxies.where('installation', '==', installation)),
});

export type RecordStore = ReturnType<typeof recordStore>;

export const recordStore = (db: Firestore) => {
  const proxies = db.collection('proxies');
  const leases = db.collection('leases');

  /** `how`: what becomes of the lease document. */
  const putBoth = async (
    record: ProxyRecord,
    before: Version | undefined,
    how: 'create' | 'update',
  ): Promise<Version> => {
    const { uid } = record.ref;
    const gate = { gate: gateOf(record), freeAt: 0 };
    const batch = db.batch();
    if (before) batch.update(proxies.doc(uid), documentOf(record), { lastUpdateTime: before.updateTime });
    else batch.create(proxies.doc(uid), documentOf(record));
    if (how === 'update') batch.update(leases.doc(uid), gate);
    else batch.create(leases.doc(uid), { ...gate, leases: toText(NO_LEASES), holders: [] });
    const [result] = await firestoreCall(db, `write record ${uid}`, () => batch.commit());
    if (!result) throw new SystemError('Transient', 'Firestore: a batch without a result');
    return { updateTime: result.writeTime };
  };

  return {
    /** `undefined` when there is none. */
    async read(uid: string): Promise<StoredRecord | undefined> {
      const snapshot = await firestoreCall(db, `read record ${uid}`, () => proxies.doc(uid).get());
      if (!snapshot.exists) return undefined;
      const read = tryStored(snapshot);
      if (!read) throw new SystemError('InvalidSpec', `Firestore: record ${uid} is not readable`);
      return read;
    },

    /**
     * First write of a proxy: the record and its lease document. Where the record alone was lost, leases that run go on under
     * the gate of the new one. Throws `Conflict` when there is a record.
     */
    async create(record: ProxyRecord): Promise<Version> {
      try {
        return await putBoth(record, undefined, 'create');
      } catch (error) {
        if (!hasCode(error, 'Conflict')) throw error;
        return putBoth(record, undefined, 'update');
      }
    },

    /** Whether there is a lease document, with or without a record. */
    async hasLeases(uid: string): Promise<boolean> {
      const { exists } = await firestoreCall(db, `look for leases of ${uid}`, () => leases.doc(uid).get());
      return exists;
    },

    /** For a Proxy that is gone and has no record: nothing can be leased any more. */
    async removeLeases(uid: string): Promise<void> {
      await firestoreCall(db, `remove leases of ${uid}`, () => leases.doc(uid).delete());
    },

    /**
     * Record and gate in one batch; a lease document that was lost is made again. Throws `Conflict` when the record is not the
     * one that was read: read and judge again.
     */
    async write(record: ProxyRecord, version: Version): Promise<Version> {
      try {
        return await putBoth(record, version, 'update');
      } catch (error) {
        if (!hasCode(error, 'NotFound')) throw error;
        return putBoth(record, version, 'create');
      }
    },

    ...recordQueries(proxies),
  };
};
