import { describe, expect, test } from 'vitest';

import { LIMITS, MINUTE, NOW, aLeftover, aMachine, aRecord, uidOf } from './builders.ts';
import { aWorld, call, type Part, type World } from './fakes.ts';
import { body, orphan, proxyObject, worldOfOrphans } from './runs.ts';

const left = aLeftover(1);
const key = `${left.zone}/${left.name}`;

/** A world in which an earlier run, which printed no plan, has seen the leftover of a Proxy that is gone. */
const worldOfLeftovers = async (): Promise<World> => {
  const world = aWorld();
  world.leftovers.set(key, left);
  world.sightings.set(`leftover:gcp:${left.id}`, NOW);
  await call(world);
  world.now += LIMITS.sightingGapMs;
  world.writes.length = 0;
  world.metrics.length = 0;
  return world;
};

const outcomes = async (world: World): Promise<unknown> => body(await call(world)).deletions;

describe('a run', () => {
  test('deletes what an orphan left behind when it went, and then is at rest again', async () => {
    const world = await worldOfOrphans();
    world.leavesBehind = true;
    expect(world.leftoverLists).toBe(0);
    expect(await outcomes(world)).toMatchObject([{ kind: 'machine', outcome: 'deleted' }]);
    for (let minute = 0; minute < 3; minute += 1) {
      expect(world.leftovers.size).toBe(1);
      world.now += MINUTE;
      await call(world);
    }
    expect(world.leftovers.size).toBe(0);
    expect(world.logLines.join('')).toMatch(/orphan leftover deleted.*"rule":"Orphan"/);
    for (let minute = 0; minute < 10; minute += 1) {
      world.now += MINUTE;
      await call(world);
    }
    expect([...world.sightings.keys()]).toEqual([]);
    const lists = world.leftoverLists;
    await call(world);
    expect(world.leftoverLists).toBe(lists);
  });

  test('that is cut short while it deletes machines has said before that their leftovers are to be looked for', async () => {
    const world = await worldOfOrphans();
    world.broken.add('delete');
    expect((await call(world)).status).toBe(503);
    world.now += MINUTE;
    await call(world);
    expect(world.leftoverLists).toBe(1);
  });

  test('counts and reports leftovers apart, and says so when it did not look at any', async () => {
    const world = await worldOfLeftovers();
    world.machines.set(`${orphan.zone}/x`, aMachine(2));
    expect((await call(world)).body).toMatchObject({ leftovers: { Orphan: 1 } });
    const counted = world.metrics.map(({ name, labels }) => [name, labels]);
    expect(counted).toContainEqual(['gc_findings', { kind: 'leftover', rule: 'Orphan' }]);
    expect(counted).toContainEqual(['gc_findings', { kind: 'machine', rule: 'FirstSighting' }]);
    expect(counted).toContainEqual(['gc_deletions', { kind: 'leftover', result: 'deleted' }]);
    const quiet = aWorld();
    expect(JSON.stringify((await call(quiet)).body)).toContain('not looked at in this run');
    expect(quiet.leftoverLists).toBe(0);
  });

  test('prints all leftovers when a person asks for the plan, and writes nothing', async () => {
    const world = aWorld();
    world.leftovers.set(key, left);
    expect((await call(world, 'dryRun=true')).body).toMatchObject({
      leftovers: [{ kind: 'leftover', name: left.name, id: left.id, rule: 'FirstSighting' }],
    });
    expect(world.writes).toEqual([]);
  });

  test('that is confirmed deletes exactly the printed leftovers (row 82)', async () => {
    const world = aWorld();
    for (let n = 1; n <= LIMITS.maxDeletions + 1; n += 1) {
      world.leftovers.set(aLeftover(n).name, aLeftover(n));
      world.sightings.set(`leftover:gcp:${aLeftover(n).id}`, NOW - 5 * MINUTE);
    }
    expect(body(await call(world)).frozen).toMatchObject([{ reason: 'TooMany' }]);
    const { digest } = body(await call(world, 'dryRun=true'));
    expect(world.writes).toEqual([]);
    world.leftovers.delete(aLeftover(1).name);
    expect((await call(world, `confirm=${digest}`)).status).toBe(409);
  });

  test('that cannot list leftovers answers 503, and deletes the orphans that it can see', async () => {
    const world = await worldOfOrphans();
    world.leftovers.set(key, left);
    world.sightings.set(`leftover:gcp:${left.id}`, NOW);
    world.broken.add('leftovers');
    const reply = await call(world);
    expect(reply.status).toBe(503);
    expect(body(reply).detail).toContain('left behind could not be listed');
    expect(world.deleted).toEqual([orphan.name]);
    expect(world.leftovers.size).toBe(1);
  });

  test('steps aside while another one deletes (K5)', async () => {
    const world = await worldOfLeftovers();
    world.lockHolder = 'another run';
    expect(await outcomes(world)).toEqual([]);
    expect(world.leftovers.size).toBe(1);
  });
});

describe('the last look at a leftover keeps it', () => {
  type Change = (world: World) => void;

  test.each<readonly [string, string, Change]>([
    ['that is gone or in use again', 'GoneOrInUse', (world) => world.leftovers.delete(key)],
    [
      'whose name another one has now',
      'OtherLeftover',
      (world) => world.leftovers.set(key, aLeftover(1, { id: 'disk-of-the-next' })),
    ],
    [
      'whose labels were edited',
      'NoLongerOurs',
      (world) => world.leftovers.set(key, aLeftover(1, { installation: 'stage' })),
    ],
    [
      'that has another UID',
      'NoLongerOurs',
      (world) => world.leftovers.set(key, aLeftover(1, { uid: uidOf(9) })),
    ],
    [
      'when a machine of its name is there, labelled or not',
      'MachineExists',
      (world) => world.machines.set(key, aMachine(1, { installation: 'stage' })),
    ],
    [
      'that something has taken into use right after it',
      'GoneOrInUse',
      (world) => {
        world.afterLook = () => world.leftovers.delete(key);
      },
    ],
    [
      'when the lock is about to pass to another run (K5)',
      'OutOfTime',
      (world) => {
        world.now += 3 * MINUTE;
      },
    ],
  ])('%s', async (_, outcome, change) => {
    const world = await worldOfLeftovers();
    world.beforeGet = () => change(world);
    expect(await outcomes(world)).toMatchObject([{ kind: 'leftover', outcome }]);
    expect(world.writes).not.toContain('deleteLeftover');
  });

  test.each<readonly [string, string, Change]>([
    ['RecordLives', 'has a record', (world) => world.records.set(uidOf(1), aRecord(1))],
    [
      'ProxyExists',
      'has a Proxy after all',
      (world) => {
        world.records.set(uidOf(1), aRecord(1, { gone: true }));
        world.proxies.push(proxyObject(1));
        world.hiddenFromList.add(uidOf(1));
      },
    ],
  ])('%s: whose owner %s that no list showed', async (outcome, _, change) => {
    const world = await worldOfLeftovers();
    world.hiddenFromIndex.add(uidOf(1));
    change(world);
    expect(await outcomes(world)).toMatchObject([{ outcome }]);
    expect(world.leftovers.size).toBe(1);
  });

  test.each<Part>(['get', 'deleteLeftover'])('when %s fails, and the next run tries again', async (part) => {
    const world = await worldOfLeftovers();
    world.broken.add(part);
    expect((await call(world)).status).toBe(503);
    expect(world.leftovers.size).toBe(1);
    world.broken.clear();
    expect(await outcomes(world)).toMatchObject([{ outcome: 'deleted' }]);
    expect(world.leftovers.size).toBe(0);
  });
});
