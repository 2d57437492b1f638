import { randomBytes, randomInt, randomUUID } from 'node:crypto';

import type { Firestore } from '@google-cloud/firestore';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';

import { DEFAULT_HEALTH_CHECK } from '#shared/domain/proxy.ts';
import type { ProxyRecord } from '#shared/domain/record.ts';
import { closeFirestore, openFirestore } from '#shared/firestore/client.ts';
import { INDEX_LIMITS, fleetIndex, type Fleet, type IndexLimits } from '#shared/firestore/fleet-index.ts';
import { recordStore, type Selection } from '#shared/firestore/records.ts';
import { sweepTombstones } from '#shared/firestore/sweep.ts';

let db: Firestore;

beforeAll(() => {
  process.env['FIRESTORE_EMULATOR_HOST'] = inject('emulators').firestore;
  db = openFirestore({ projectId: `t${randomBytes(6).toString('hex')}` });
});

afterAll(() => closeFirestore(db));

const aRecord = (installation: string): ProxyRecord => ({
  ref: { namespace: 'crawlers', name: 'p', uid: randomUUID() },
  installation,
  provider: 'gcp',
  generation: 1,
  labels: {},
  maxLeases: 1,
  cordoned: false,
  deleting: false,
  drainTimeoutSeconds: 300,
  healthCheck: DEFAULT_HEALTH_CHECK,
  draining: [],
  machines: [{ name: 'm', hash: 'abcdef01', incarnation: 1, zones: ['a'], instanceId: '7' }],
  incarnation: 1,
  gone: false,
});

/** An index that looks back no further than it must here, so that what it holds is not read beside it as well. */
const openWorld = (change: Partial<IndexLimits> = {}) => {
  const installation = `i${randomBytes(4).toString('hex')}`;
  const store = recordStore(db);
  const spent = { scans: 0, reads: 0 };
  const counted = async (selection: Promise<Selection>): Promise<Selection> => {
    const { records, unreadable } = await selection;
    spent.reads += Math.max(1, records.length + unreadable.length);
    return selection;
  };
  const counting = {
    all: (id: string) => {
      spent.scans += 1;
      return counted(store.all(id));
    },
    changedSince: (id: string, time: number) => counted(store.changedSince(id, time)),
  };
  const index = fleetIndex(db, counting, installation, { ...INDEX_LIMITS, marginMs: 2, ...change });
  return { installation, store, spent, index };
};
type World = ReturnType<typeof openWorld>;

const create = async ({ store, installation }: World): Promise<string> => {
  const record = aRecord(installation);
  await store.create(record);
  return record.ref.uid;
};

const edit = async ({ store }: World, uid: string, change: Partial<ProxyRecord>): Promise<void> => {
  const stored = await store.read(uid);
  if (!stored) throw new Error('the record is not there');
  await store.write({ ...stored.record, ...change }, stored.version);
};

const byUid = ({ records, unreadable }: Pick<Fleet, 'records' | 'unreadable'>): unknown => ({
  records: Object.fromEntries(records.map((indexed) => [indexed.record.ref.uid, indexed])),
  unreadable: unreadable.toSorted(),
});

/** What the query for all records finds. */
const scanned = async ({ store, installation }: World): Promise<unknown> => {
  const { records, unreadable } = await store.all(installation);
  return byUid({
    unreadable,
    records: records.map(({ record, version }) => ({ record, updatedAt: version.updateTime.toMillis() })),
  });
};

const readAndSave = async ({ index }: World): Promise<Fleet> => {
  const fleet = await index.read();
  await index.save(fleet, []);
  return fleet;
};

type Action = 'create' | 'edit' | 'close' | 'spoil' | 'sweep' | 'save' | 'saveOld';
const ACTIONS: readonly Action[] = ['create', 'edit', 'close', 'spoil', 'sweep', 'save', 'saveOld'];

interface Life {
  readonly world: World;
  readonly uids: string[];
  /** What a run that is slow read some time ago. */
  old: Fleet | undefined;
}

const spoil = (uid: string): Promise<unknown> =>
  db.collection('proxies').doc(uid).update({ record: 'not a record', changedAt: new Date() });

const sweep = async ({ index }: World): Promise<void> => {
  const fleet = await index.read();
  const tombstones = fleet.records
    .filter(({ record }) => record.gone)
    .map(({ record, updatedAt }) => ({ uid: record.ref.uid, updatedAt }));
  await index.save(fleet, await sweepTombstones(db, tombstones));
};

const perform = async (life: Life, action: Action, dice: number): Promise<void> => {
  const { world, uids } = life;
  const fleet = await world.store.all(world.installation);
  // The first one stays: without any record there is no index.
  const live = fleet.records.map(({ record }) => record.ref.uid).filter((uid) => uid !== uids[0]);
  const uid = live[dice % Math.max(1, live.length)];
  if (action === 'create') uids.push(await create(world));
  else if (action === 'save') life.old = await readAndSave(world);
  else if (action === 'saveOld' && life.old) await world.index.save(life.old, []);
  else if (action === 'sweep') await sweep(world);
  else if (uid !== undefined && action === 'spoil') await spoil(uid);
  else if (uid !== undefined && action === 'close') await edit(world, uid, { gone: true, machines: [] });
  else if (uid !== undefined && action === 'edit') await edit(world, uid, { generation: dice, wakeAt: dice });
};

describe('the index of the fleet', () => {
  test('with what changed since is what a query for all records finds, whatever happens in which order', async () => {
    const seed = randomInt(2 ** 31);
    console.info(`seed ${seed}`);
    const actions = fc.array(fc.tuple(fc.constantFrom(...ACTIONS), fc.nat({ max: 1000 })), {
      minLength: 10,
      maxLength: 30,
    });
    const property = fc.asyncProperty(actions, async (steps) => {
      // Every change makes the index worth writing.
      const life: Life = { world: openWorld({ maxChanges: 0 }), uids: [], old: undefined };
      life.uids.push(await create(life.world));
      await readAndSave(life.world);
      for (const [action, dice] of steps) {
        await perform(life, action, dice);
        expect(byUid(await life.world.index.read())).toEqual(await scanned(life.world));
      }
      expect(life.world.spent.scans).toBe(1);
    });
    await fc.assert(property, { seed, numRuns: 3, endOnFailure: true });
  }, 60_000);

  test('costs one read for all that is unchanged, and is written once', async () => {
    const world = openWorld();
    for (let n = 0; n < 30; n += 1) await create(world);
    await readAndSave(world);
    world.spent.reads = 0;
    await readAndSave(world);
    expect(world.spent).toEqual({ scans: 1, reads: 1 });
    const query = db.collection('fleet').where('installation', '==', world.installation);
    const [document, ...more] = (await query.get()).docs;
    expect(more).toEqual([]);
    await readAndSave(world);
    expect((await query.get()).docs[0]?.updateTime).toEqual(document?.updateTime);
  });

  test('is written anew once it saves more reads than it costs', async () => {
    const world = openWorld({ maxChanges: 3 });
    for (let n = 0; n < 10; n += 1) await create(world);
    await readAndSave(world);
    for (let n = 0; n < 3; n += 1) await create(world);
    expect((await readAndSave(world)).basis.changes).toBe(3);
    expect((await readAndSave(world)).basis.changes).toBe(3);
    await create(world);
    expect((await readAndSave(world)).basis.changes).toBe(4);
    expect((await readAndSave(world)).basis.changes).toBe(0);
  });

  test('that is not whole, or cannot be read, is not used: every record is read again', async () => {
    const world = openWorld();
    await create(world);
    await readAndSave(world);
    const document = db.collection('fleet').doc(`${world.installation}-0`);
    for (const damage of [{ of: 2 }, { data: Buffer.from('x') }, { edition: 7 }]) {
      await document.update(damage);
      world.spent.scans = 0;
      expect(byUid(await readAndSave(world))).toEqual(await scanned(world));
      expect(byUid(await readAndSave(world))).toEqual(await scanned(world));
      expect(world.spent.scans).toBe(1);
    }
  });

  test('a record that a person deleted is found to be gone by the daily look at all of them', async () => {
    const world = openWorld({ scanEveryMs: 0 });
    const uid = await create(world);
    await create(world);
    await readAndSave(world);
    await db.collection('proxies').doc(uid).delete();
    expect(byUid(await readAndSave(world))).toEqual(await scanned(world));
  });

  test('what was swept is not in the index that is saved, whether it could be read or not', async () => {
    const world = openWorld();
    const [stays, goes, spoiled] = [await create(world), await create(world), await create(world)];
    await spoil(spoiled);
    const fleet = await readAndSave(world);
    expect([fleet.records.length, fleet.unreadable]).toEqual([2, [spoiled]]);
    for (const uid of [goes, spoiled]) await db.collection('proxies').doc(uid).delete();
    await world.index.save(await world.index.read(), [goes, spoiled]);
    const next = await world.index.read();
    expect([next.records.map(({ record }) => record.ref.uid), next.unreadable]).toEqual([[stays], []]);
    expect(world.spent.scans).toBe(1);
  });

  test('is that of one installation (B2)', async () => {
    const [prod, stage] = [openWorld(), openWorld()];
    await create(prod);
    await readAndSave(prod);
    expect((await readAndSave(stage)).records).toEqual([]);
    await create(stage);
    await readAndSave(stage);
    expect(byUid(await prod.index.read())).toEqual(await scanned(prod));
  });
});
