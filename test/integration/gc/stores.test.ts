import { randomBytes, randomUUID } from 'node:crypto';

import type { Firestore } from '@google-cloud/firestore';
import { Timestamp } from '@google-cloud/firestore';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';

import { DEFAULT_HEALTH_CHECK } from '#shared/domain/proxy.ts';
import type { ProxyRecord } from '#shared/domain/record.ts';
import { closeFirestore, openFirestore } from '#shared/firestore/client.ts';
import { installationStore } from '#shared/firestore/installations.ts';
import { recordStore, type StoredRecord } from '#shared/firestore/records.ts';
import { sightingStore } from '#shared/firestore/sightings.ts';
import { sweepTombstones, type Tombstone } from '#shared/firestore/sweep.ts';

let db: Firestore;

beforeAll(() => {
  process.env['FIRESTORE_EMULATOR_HOST'] = inject('emulators').firestore;
  db = openFirestore({ projectId: `t${randomBytes(6).toString('hex')}` });
});

afterAll(() => closeFirestore(db));

const aRecord = (gone: boolean): ProxyRecord => ({
  ref: { namespace: 'crawlers', name: 'p', uid: randomUUID() },
  installation: 'prod',
  provider: 'gcp',
  generation: 1,
  labels: {},
  maxLeases: 1,
  cordoned: false,
  deleting: false,
  drainTimeoutSeconds: 300,
  healthCheck: DEFAULT_HEALTH_CHECK,
  draining: [],
  machines: [],
  incarnation: 1,
  gone,
});

const exists = async (uid: string): Promise<readonly boolean[]> => {
  const read = await Promise.all(['proxies', 'leases'].map((name) => db.collection(name).doc(uid).get()));
  return read.map((snapshot) => snapshot.exists);
};

const create = async (gone: boolean) => {
  const store = recordStore(db);
  const record = aRecord(gone);
  await store.create(record);
  const stored = await store.read(record.ref.uid);
  if (!stored) throw new Error('the record is not there');
  return stored;
};

const judged = ({ record, version }: StoredRecord): Tombstone => ({
  uid: record.ref.uid,
  updatedAt: version.updateTime.toMillis(),
});

test('a record that alone was lost is made again: its gate is new, its leases and their fence go on', async () => {
  const stored = await create(false);
  const { uid } = stored.record.ref;
  const lease = db.collection('leases').doc(uid);
  await lease.update({ leases: '{"fence":7}', gate: { open: true } });
  await db.collection('proxies').doc(uid).delete();
  await recordStore(db).create(stored.record);
  expect((await recordStore(db).read(uid))?.record).toEqual(stored.record);
  const after = (await lease.get()).data();
  expect(after).toMatchObject({ leases: '{"fence":7}', gate: { open: false } });
  await expect(recordStore(db).create(stored.record)).rejects.toMatchObject({ code: 'Conflict' });
  expect(await recordStore(db).hasLeases(uid)).toBe(true);
  await recordStore(db).removeLeases(uid);
  expect(await exists(uid)).toEqual([true, false]);
  expect(await recordStore(db).hasLeases(uid)).toBe(false);
});

test('a lease document that alone was lost is made again with the next write of its record', async () => {
  const stored = await create(false);
  const { uid } = stored.record.ref;
  await recordStore(db).removeLeases(uid);
  await recordStore(db).write({ ...stored.record, generation: 2 }, stored.version);
  expect(await exists(uid)).toEqual([true, true]);
  expect((await recordStore(db).read(uid))?.record.generation).toBe(2);
  await recordStore(db).removeLeases(uid);
  await expect(recordStore(db).write(stored.record, stored.version)).rejects.toMatchObject({
    code: 'Conflict',
  });
});

describe('the sweep', () => {
  test('removes a tombstone with its lease document, and names one that is gone already', async () => {
    const stored = await create(true);
    const { uid } = stored.record.ref;
    expect(await sweepTombstones(db, [judged(stored)])).toEqual([uid]);
    expect(await exists(uid)).toEqual([false, false]);
    expect(await sweepTombstones(db, [judged(stored)])).toEqual([uid]);
  });

  test('leaves a live record, and a tombstone that was written since it was read', async () => {
    const [live, revived] = [await create(false), await create(true)];
    await recordStore(db).write({ ...revived.record, gone: false }, revived.version);
    expect(await sweepTombstones(db, [judged(live), judged(revived)])).toEqual([]);
    expect(await exists(live.record.ref.uid)).toEqual([true, true]);
    expect(await exists(revived.record.ref.uid)).toEqual([true, true]);
  });
});

describe('sightings', () => {
  test('keep the first time, end when removed, and are those of one installation (B2)', async () => {
    const [prod, stage] = [sightingStore(db, 'prod'), sightingStore(db, 'stage')];
    await prod.add(['a', 'b'], 1000);
    await prod.add(['a'], 2000);
    await stage.add(['a'], 3000);
    expect(await prod.all()).toEqual(
      new Map([
        ['a', 1000],
        ['b', 1000],
      ]),
    );
    await prod.remove(['a']);
    expect(await prod.all()).toEqual(new Map([['b', 1000]]));
    expect(await stage.all()).toEqual(new Map([['a', 3000]]));
  });

  test('carry a timestamp for the TTL policy (row 32)', async () => {
    await sightingStore(db, 'ttl').add(['a'], 1000);
    const { docs } = await db.collection('sightings').where('installation', '==', 'ttl').get();
    expect(docs.map((snapshot): unknown => snapshot.get('expireAt'))).toEqual([
      Timestamp.fromMillis(1000 + 7 * 24 * 3_600_000),
    ]);
  });
});

test('an installation remembers the first cluster and no other', async () => {
  const store = installationStore(db, 'prod');
  expect(await store.cluster()).toBeUndefined();
  await store.remember('first');
  await store.remember('second');
  expect(await store.cluster()).toBe('first');
  await db.collection('installations').doc('prod').set({});
  await expect(store.cluster()).rejects.toMatchObject({ code: 'InvalidSpec' });
});
