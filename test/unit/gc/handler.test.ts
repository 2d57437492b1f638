import { describe, expect, test } from 'vitest';

import { LIMITS, MINUTE, aMachine, aRecord, aTombstone, uidOf } from './builders.ts';
import { aWorld, call, type Part, type World } from './fakes.ts';
import { body, orphan, proxyObject, worldOfOrphans } from './runs.ts';

describe('a run', () => {
  test('deletes an orphan at the second sighting and not before, and logs the rule (K6, row 81)', async () => {
    const world = aWorld([orphan]);
    await call(world);
    world.now += LIMITS.sightingGapMs - 1;
    await call(world);
    expect(world.deleted).toEqual([]);
    world.now += 1;
    const reply = await call(world);
    expect(reply.status).toBe(200);
    expect(body(reply).deletions).toMatchObject([{ name: orphan.name, outcome: 'deleted' }]);
    expect(world.deleted).toEqual([orphan.name]);
    expect(world.logLines.join('')).toMatch(/orphan machine deleted.*"rule":"Orphan"/);
  });

  test('forgets what it saw when the Proxy shows up in between (row 81)', async () => {
    const world = await worldOfOrphans();
    world.proxies.push(proxyObject(1));
    await call(world);
    world.proxies.pop();
    world.now += LIMITS.sightingGapMs;
    await call(world);
    expect(world.deleted).toEqual([]);
  });

  test('deletes no machine whose record an index lacks: each record is read once more (K6)', async () => {
    const world = await worldOfOrphans();
    world.records.set(uidOf(1), aRecord(1));
    world.hiddenFromIndex.add(uidOf(1));
    const reply = await call(world);
    expect(body(reply).deletions).toMatchObject([{ name: orphan.name, outcome: 'RecordLives' }]);
    expect(world.deleted).toEqual([]);
  });

  test('counts what it found, by the rule that keeps or condemns it', async () => {
    const world = aWorld([orphan, aMachine(2)]);
    world.proxies.push(proxyObject(2));
    world.records.set(uidOf(2), aRecord(2));
    await call(world);
    const found = world.metrics
      .filter(({ name }) => name === 'gc_findings')
      .map(({ labels }) => labels['rule']);
    expect(new Set(found)).toEqual(new Set(['FirstSighting', 'ProxyExists']));
    await call(world, 'dryRun=true');
    expect(world.metrics.filter(({ name }) => name === 'gc_findings')).toHaveLength(2);
  });

  test('writes each sighting once', async () => {
    const world = aWorld([aMachine(1, { createdAt: 0 })]);
    await call(world);
    await call(world);
    expect(world.writes.filter((write) => write === 'sightings.add')).toHaveLength(1);
  });

  test('in a steady world writes nothing at all', async () => {
    const world = aWorld([orphan]);
    world.proxies.push(proxyObject(1));
    world.records.set(uidOf(1), aRecord(1));
    await call(world);
    world.writes.length = 0;
    expect((await call(world)).status).toBe(200);
    expect(world.writes).toEqual([]);
  });

  test('remembers the cluster that it meets first, and keeps to it', async () => {
    const world = aWorld();
    world.rememberedCluster = undefined;
    await call(world);
    world.clusterId = 'cluster-2';
    const reply = await call(world);
    expect(world.rememberedCluster).toBe('cluster-1');
    expect(body(reply).frozen).toMatchObject([{ reason: 'ClusterChanged' }]);
  });

  test('steps aside when another run is deleting, and still nudges (K5)', async () => {
    const world = await worldOfOrphans();
    world.lockHolder = 'another run';
    world.records.set(uidOf(2), aRecord(2, { wakeAt: 0 }));
    const reply = await call(world);
    expect(reply.status).toBe(200);
    expect(body(reply).steppedAside).toBeDefined();
    expect(world.deleted).toEqual([]);
    expect(world.published).toHaveLength(1);
    expect(world.lockHolder).toBe('another run');
  });

  test('frees the lock, also when a deletion fails', async () => {
    const world = await worldOfOrphans();
    world.broken.add('delete');
    expect((await call(world)).status).toBe(503);
    expect(world.lockHolder).toBeUndefined();
    world.broken.clear();
    expect((await call(world)).status).toBe(200);
    expect(world.deleted).toEqual([orphan.name]);
  });

  test('sends no second delete call while the first is still without effect (W1)', async () => {
    const world = await worldOfOrphans();
    world.slowDeletes = true;
    for (let minute = 0; minute < 2; minute += 1) {
      await call(world);
      world.now += MINUTE;
    }
    expect(world.deleted).toEqual([orphan.name]);
    world.now += LIMITS.sightingGapMs;
    await call(world);
    expect(world.deleted).toEqual([orphan.name, orphan.name]);
  });

  test('sweeps a tombstone once its machine is gone', async () => {
    const world = aWorld();
    world.records.set(uidOf(1), aTombstone(1));
    await call(world);
    expect(world.swept).toEqual([uidOf(1)]);
    expect(world.leftOut, 'of the index, where nothing else would take it out').toEqual([uidOf(1)]);
  });

  test('row 16: nudges under a key that no other message has, and under another one in the next hour', async () => {
    const world = aWorld();
    world.records.set(uidOf(1), aRecord(1, { wakeAt: world.now }));
    for (let run = 0; run < 3; run += 1) {
      await call(world);
      world.now += 31 * MINUTE;
    }
    const [first, second, third] = world.publishedUnder;
    expect(world.publishedUnder).toHaveLength(3);
    expect([first, second, third]).not.toContain(uidOf(1));
    expect(new Set(world.publishedUnder).size).toBe(2);
    expect(first).toMatch(new RegExp(`^${uidOf(1)}/`));
  });

  test('deletes nothing that took so long to look at again that another run may have begun (K5)', async () => {
    const world = await worldOfOrphans();
    world.beforeGet = () => {
      world.now += 121_000;
    };
    const reply = await call(world);
    expect(world.deleted).toEqual([]);
    expect(body(reply).deletions).toMatchObject([{ outcome: 'OutOfTime' }]);
  });
});

describe('right before a deletion gc looks again, and keeps', () => {
  const LATE: Readonly<Record<string, readonly [outcome: string, change: (world: World) => void]>> = {
    'a machine that is another one by now (W4)': [
      'OtherMachine',
      (world) => world.machines.set(`${orphan.zone}/${orphan.name}`, aMachine(1, { instanceId: 'new' })),
    ],
    'a machine that is gone by now (row 44)': ['AlreadyGone', (world) => world.machines.clear()],
    'a machine that is stopping by now (W1)': [
      'DeleteUnderWay',
      (world) => world.machines.set(`${orphan.zone}/${orphan.name}`, aMachine(1, { state: 'stopping' })),
    ],
    'a machine that was handed over by now (B2)': [
      'NoLongerOurs',
      (world) => world.machines.set(`${orphan.zone}/${orphan.name}`, aMachine(1, { installation: 'stage' })),
    ],
  };

  test.each(Object.entries(LATE))('%s', async (_, [outcome, change]) => {
    const world = await worldOfOrphans();
    world.beforeGet = () => change(world);
    const reply = await call(world);
    expect(world.deleted).toEqual([]);
    expect(body(reply).deletions).toMatchObject([{ outcome }]);
  });

  test('a machine whose Proxy answers to a live read although the list lacked it (row 82)', async () => {
    const world = await worldOfOrphans();
    world.records.set(uidOf(1), aTombstone(1));
    world.proxies.push(proxyObject(1));
    world.hiddenFromList.add(uidOf(1));
    const reply = await call(world);
    expect(body(reply).deletions).toMatchObject([{ outcome: 'ProxyExists' }]);
    expect(world.deleted).toEqual([]);
  });

  test.each<Part>(['get', 'getProxy'])('every machine while the live read %s fails', async (part) => {
    const world = await worldOfOrphans();
    world.records.set(uidOf(1), aTombstone(1));
    world.broken.add(part);
    const reply = await call(world);
    expect(reply.status).toBe(503);
    expect(world.deleted).toEqual([]);
  });
});

describe('when something is away', () => {
  test('an unreadable list of Proxies deletes nothing and answers 503, but what is due is nudged (row 82)', async () => {
    const world = await worldOfOrphans();
    world.broken.add('proxies');
    world.records.set(uidOf(2), aRecord(2, { wakeAt: 0 }));
    const reply = await call(world);
    expect(reply.status).toBe(503);
    expect(reply.headers?.['retry-after']).toBeDefined();
    expect(body(reply).detail).toContain('Proxies could not be listed');
    expect(world.deleted).toEqual([]);
    expect(world.published.map(({ uid }) => uid)).toEqual([uidOf(2)]);
  });

  test('an unreadable list of machines answers 503, but what is due is nudged (row 48)', async () => {
    const world = aWorld();
    world.broken.add('machines');
    world.records.set(uidOf(2), aRecord(2, { wakeAt: 0 }));
    world.proxies.push(proxyObject(2));
    expect((await call(world)).status).toBe(503);
    expect(world.published).toHaveLength(1);
  });

  test('an unreachable zone keeps its machines and is said in the answer, which is 200 (row 47)', async () => {
    const world = await worldOfOrphans();
    world.unknownZones.push(orphan.zone);
    const reply = await call(world);
    expect(reply.status).toBe(200);
    expect(JSON.stringify(reply.body)).toContain(`zone ${orphan.zone}`);
    expect(world.deleted).toEqual([]);
  });

  test('a nudge that cannot be sent answers 503 and stops no deletion', async () => {
    const world = await worldOfOrphans();
    world.broken.add('publish');
    world.records.set(uidOf(2), aRecord(2, { wakeAt: 0 }));
    expect((await call(world)).status).toBe(503);
    expect(world.deleted).toEqual([orphan.name]);
  });
});
