/** What is left of Proxies that are gone, once all is quiet: disks, records, gates, credentials, sightings. */

import type { Firestore } from '@google-cloud/firestore';
import { z } from 'zod';

import { MACHINE_LABELS } from '#shared/domain/names.ts';
import { closeFirestore, openFirestore } from '#shared/firestore/client.ts';
import type { World } from '#test/e2e/world.ts';

import type { Fleet } from './fleet.ts';

const endpoint = z.looseObject({ endpoint: z.looseObject({ id: z.string() }) });

const recordSchema = z.looseObject({
  gone: z.boolean(),
  serving: endpoint.optional(),
  candidate: endpoint.optional(),
  draining: z.array(endpoint),
  credentials: z.array(z.string()).optional(),
});
type SeenRecord = z.infer<typeof recordSchema>;

const idsIn = async (db: Firestore, collection: string): Promise<readonly string[]> =>
  (await db.collection(collection).listDocuments()).map(({ id }) => id);

const recordsIn = async (db: Firestore): Promise<ReadonlyMap<string, SeenRecord>> => {
  const { docs } = await db.collection('proxies').get();
  return new Map(docs.map((document) => [document.id, recordSchema.parse(document.get('record'))]));
};

/** Names of machines stay in a tombstone: whoever they were of, they are gone by now, or counted elsewhere. */
const closed = ({ gone, serving, candidate, draining }: SeenRecord): boolean =>
  gone && !serving && !candidate && draining.length === 0;

const recordLeaks = (records: ReadonlyMap<string, SeenRecord>, living: ReadonlySet<string>) =>
  [...records].flatMap(([uid, record]) =>
    living.has(uid) || closed(record) ? [] : [`record ${uid} of a Proxy that is gone is not closed`],
  );

const storeLeaks = async (db: Firestore, secrets: Firestore, living: ReadonlySet<string>) => {
  const records = await recordsIn(db);
  const used = new Set([...records.values()].flatMap(({ credentials = [] }) => credentials));
  const gates = await idsIn(db, 'leases');
  const kept = await idsIn(secrets, 'credentials');
  const sightings = await db.collection('sightings').get();
  return [
    ...recordLeaks(records, living),
    ...gates.filter((uid) => !records.has(uid)).map((uid) => `leases ${uid} without a record`),
    ...kept.filter((id) => !used.has(id)).map((id) => `credentials of endpoint ${id}, which no record names`),
    ...sightings.docs
      .map((document) => String(document.get('key')))
      // What says that something was deleted lately goes by itself, later than anybody waits here.
      .filter((key) => !key.startsWith('deletions:'))
      .map((key) => `sighting ${key}`),
  ];
};

const diskLeaks = ({ stack, installation }: World): readonly string[] =>
  stack.cloud.compute.control
    .disks()
    .filter(
      ({ labels, user }) => labels[MACHINE_LABELS.installation] === installation.id && user === undefined,
    )
    .map(({ name, zone }) => `disk ${name} in ${zone} belongs to no machine`);

/** One line each; empty when nothing is left. */
export const leaks = async (world: World, fleet: Fleet): Promise<readonly string[]> => {
  const projectId = world.stack.env['GOOGLE_CLOUD_PROJECT'] ?? '';
  const { databaseId, credentialsDatabaseId } = world.installation;
  const db = openFirestore({ projectId, databaseId });
  const secrets = openFirestore({ projectId, databaseId: credentialsDatabaseId });
  const living = new Set(fleet.slots.filter(({ phase }) => phase === 'present').map(({ uid }) => uid));
  try {
    return [...diskLeaks(world), ...(await storeLeaks(db, secrets, living))];
  } finally {
    await Promise.all([closeFirestore(db), closeFirestore(secrets)]);
  }
};
