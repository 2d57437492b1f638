/**
 * The views `views/{shard}-of-{shards}-{n}`: every published endpoint in a few documents, leasable or not, with
 * the server time of what they were made from. With the records that changed since, they are the fleet as it is now.
 */

import { Timestamp, type Firestore, type QuerySnapshot } from '@google-cloud/firestore';
import { z } from 'zod';

import { gateOf, type Gate } from '#shared/domain/gate.ts';

import { firestoreCall } from './client.ts';
import type { Selection, Version } from './records.ts';
import type { ServerTime } from './server-time.ts';
import { packViews, unpackView, type PackedView } from './view-codec.ts';

/** Views that are older are written again although nothing has changed. */
export const REFRESH_AFTER_MS = 20 * 60_000;
/** Views that are older are not believed: by then the tombstone of a proxy that they show may have been swept. */
export const BELIEVED_MS = 45 * 60_000;
/** Other changes since, each of which every reader reads again until the views are newer. */
const MAX_CHANGES = 50;

const schema = z.object({
  readAt: z.instanceof(Timestamp),
  shard: z.string(),
  shards: z.int().min(1),
  /** How many documents make up the shard. */
  of: z.int().min(1),
  digest: z.string(),
  data: z.instanceof(Uint8Array),
});
type ViewDocument = z.output<typeof schema>;

export interface Views {
  /** Server milliseconds; what was committed long enough before is in them. */
  readonly readAt: number;
  readonly gates: readonly Gate[];
}

/** True when every document of every shard is there. */
const isWhole = (documents: readonly ViewDocument[]): boolean => {
  const byShard = Map.groupBy(documents, ({ shard }) => shard);
  return (
    documents.every(({ shards }) => shards === byShard.size) &&
    [...byShard.values()].every((parts) => parts.every(({ of }) => of === parts.length))
  );
};

const oldest = (documents: readonly ViewDocument[]): number =>
  Math.min(...documents.map(({ readAt }) => readAt.toMillis()));

/** While the number of shards changes there may be two sets. */
const newestWhole = (snapshot: QuerySnapshot): readonly ViewDocument[] | undefined => {
  const found = snapshot.docs.flatMap((doc) => schema.safeParse(doc.data()).data ?? []);
  const sets = [...Map.groupBy(found, ({ shards }) => shards).values()].filter(isWhole);
  return sets.toSorted((a, b) => oldest(b) - oldest(a))[0];
};

export type ViewStore = ReturnType<typeof viewStore>;

/** For readers. */
export const viewStore = (db: Firestore, time: ServerTime) => ({
  /** `undefined` when there are none that can be believed: never written, not whole, or too old. */
  async read(installation: string): Promise<Views | undefined> {
    const query = db.collection('views').where('installation', '==', installation);
    const snapshot = await firestoreCall(db, 'read views', () => query.get());
    time.observe(snapshot.readTime);
    const documents = newestWhole(snapshot);
    if (!documents) return undefined;
    const readAt = oldest(documents);
    if (snapshot.readTime.toMillis() - readAt > BELIEVED_MS) return undefined;
    const gates: Gate[] = [];
    for (const { data } of documents) {
      const entries = unpackView(data);
      if (!entries) return undefined;
      for (const gate of entries) gates.push(gate);
    }
    return { readAt, gates };
  },
});

/** A document as it was written or read last. */
interface Known {
  readonly digest: string;
  readonly readAt: number;
  readonly version: Version;
}

/** Which part of the fleet a selection is: one of `shards` shards, by its name. */
export interface ViewScope {
  readonly installation: string;
  readonly shard: string;
  readonly shards: number;
}

export interface ViewWriter {
  /**
   * Makes the views of a shard show these records, if they do not already. Resolves with the number of documents written.
   * Throws `Conflict` when somebody else writes them too: the next call reads them first.
   */
  write(scope: ViewScope, selection: Selection): Promise<number>;
}

const isStale = ({ readAt }: Known, { records, readTime }: Selection): boolean =>
  readTime - readAt > REFRESH_AFTER_MS ||
  records.filter(({ version }) => version.updateTime.toMillis() > readAt).length > MAX_CHANGES;

type KnownViews = ReadonlyMap<string, Known>;
type NamedView = PackedView & { readonly id: string };

const prefixOf = ({ shard, shards }: ViewScope): string => `${shard}-of-${shards}-`;

const viewsOf = (scope: ViewScope, { records }: Selection): readonly NamedView[] =>
  packViews(records.map(({ record }) => gateOf(record))).map(({ data, digest }, index) => ({
    data,
    digest,
    id: `${prefixOf(scope)}${index}`,
  }));

const isCurrent = (views: readonly NamedView[], known: KnownViews, selection: Selection): boolean =>
  known.size === views.length &&
  views.every(({ id, digest }) => known.get(id)?.digest === digest) &&
  ![...known.values()].some((view) => isStale(view, selection));

/** Documents of this shard, and those of another number of shards, which are in the way. */
const readKnown = async (db: Firestore, scope: ViewScope): Promise<KnownViews> => {
  const query = db.collection('views').where('installation', '==', scope.installation);
  const { docs } = await firestoreCall(db, 'read views', () => query.get());
  const known = new Map<string, Known>();
  for (const doc of docs) {
    const { digest = '', readAt, shards } = schema.safeParse(doc.data()).data ?? {};
    const isOther = shards !== scope.shards;
    if (!isOther && !doc.id.startsWith(prefixOf(scope))) continue;
    known.set(doc.id, { digest, readAt: readAt?.toMillis() ?? 0, version: { updateTime: doc.updateTime } });
  }
  return known;
};

/** All or nothing, so that readers never see parts of two. */
const commitViews = async (
  db: Firestore,
  scope: ViewScope,
  views: readonly NamedView[],
  known: KnownViews,
  readAt: number,
): Promise<KnownViews> => {
  const collection = db.collection('views');
  const batch = db.batch();
  for (const { id, data, digest } of views) {
    const common = { ...scope, readAt: Timestamp.fromMillis(readAt), of: views.length };
    const before = known.get(id);
    if (before) {
      batch.update(
        collection.doc(id),
        { ...common, digest, data },
        { lastUpdateTime: before.version.updateTime },
      );
    } else batch.create(collection.doc(id), { ...common, digest, data });
  }
  const ids = new Set(views.map(({ id }) => id));
  for (const id of known.keys()) if (!ids.has(id)) batch.delete(collection.doc(id));
  const results = await firestoreCall(db, 'write views', () => batch.commit());
  return new Map(
    views.flatMap(({ id, digest }, index) => {
      const result = results[index];
      return result ? [[id, { digest, readAt, version: { updateTime: result.writeTime } }] as const] : [];
    }),
  );
};

/** For health. An instance remembers what it wrote, so that a steady fleet costs neither reads nor writes. */
export const viewWriter = (db: Firestore): ViewWriter => {
  const remembered = new Map<string, KnownViews>();
  return {
    async write(scope, selection) {
      const shard = prefixOf(scope);
      const known = remembered.get(shard) ?? (await readKnown(db, scope));
      remembered.set(shard, known);
      const views = viewsOf(scope, selection);
      if (isCurrent(views, known, selection)) return 0;
      // Whatever becomes of the write, what was known before it is known no more.
      remembered.delete(shard);
      remembered.set(shard, await commitViews(db, scope, views, known, selection.readTime));
      return views.length;
    },
  };
};
