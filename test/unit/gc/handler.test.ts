import { describe, expect, test } from 'vitest';
import { z } from 'zod';

import type { HttpReply } from '#shared/app/http.ts';
import type { ProxyObject } from '#shared/kubernetes/cluster.ts';

import { LIMITS, MINUTE, aMachine, aRecord, aTombstone, uidOf } from './builders.ts';
import { aWorld, call, type Part, type World } from './fakes.ts';

const replySchema = z.object({
  digest: z.string().optional(),
  frozen: z.array(z.object({ reason: z.string() })).optional(),
  steppedAside: z.string().optional(),
  deletions: z.array(z.object({ name: z.string(), outcome: z.string().optional() })).optional(),
  machines: z.unknown().optional(),
  code: z.string().optional(),
  detail: z.string().optional(),
});
const body = (reply: HttpReply) => replySchema.parse(reply.body);

const proxyObject = (n: number): ProxyObject => ({
  apiVersion: 'crawl.example.com/v1alpha1',
  kind: 'Proxy',
  metadata: {
    namespace: 'crawlers',
    name: `proxy-${n}`,
    uid: uidOf(n),
    generation: 1,
    resourceVersion: '1',
    creationTimestamp: '2026-11-01T00:00:00Z',
  },
  spec: {},
});

const orphan = aMachine(1);

/** A world with these orphans, in which earlier runs have seen them. */
const worldOfOrphans = async (count = 1): Promise<World> => {
  const world = aWorld(Array.from({ length: count }, (_, index) => aMachine(index + 1)));
  await call(world);
  world.now += LIMITS.sightingGapMs;
  world.writes.length = 0;
  return world;
};

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

  test('sweeps a tombstone once its machine is gone', async () => {
    const world = aWorld();
    world.records.set(uidOf(1), aTombstone(1));
    await call(world);
    expect(world.swept).toEqual([uidOf(1)]);
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

describe('a dry run', () => {
  test('prints each machine with its rule, each nudge with its reason, and does nothing at all', async () => {
    const world = aWorld([orphan, aMachine(2, { createdAt: Number.MAX_SAFE_INTEGER })]);
    world.rememberedCluster = undefined;
    world.records.set(uidOf(3), aRecord(3, { wakeAt: 0 }));
    world.records.set(uidOf(4), aTombstone(4));
    const reply = await call(world, 'dryRun=true');
    expect(reply.body).toMatchObject({
      machines: [
        { name: orphan.name, rule: 'FirstSighting' },
        { name: aMachine(2).name, rule: 'TooYoung' },
      ],
      nudges: [{ uid: uidOf(3) }],
      sweep: [uidOf(4)],
    });
    expect(body(reply).digest).toMatch(/^[0-9a-f]{64}$/);
    expect(world.writes).toEqual([]);
    expect(world.sightings.size).toBe(0);
  });

  test('shows what a run would delete', async () => {
    const world = await worldOfOrphans();
    expect(body(await call(world, 'dryRun=true')).deletions).toMatchObject([{ name: orphan.name }]);
    expect(world.writes).toEqual([]);
  });
});

describe('a frozen run', () => {
  test('deletes nothing, says why in answer, log and metric, and is released by its digest', async () => {
    const world = await worldOfOrphans(4);
    const frozen = await call(world);
    expect(world.deleted).toEqual([]);
    expect(body(frozen).frozen).toMatchObject([{ reason: 'MostOfFleet' }]);
    expect(world.metrics).toContainEqual({ name: 'gc_frozen', labels: { reason: 'MostOfFleet' } });
    expect(world.logLines.join('')).toContain('deletions are frozen');

    const plan = body(await call(world, 'dryRun=true'));
    expect(plan.digest).toBe(body(frozen).digest);
    await call(world, `confirm=${plan.digest}`);
    expect(world.deleted).toHaveLength(4);
  });

  test('is not released by the digest of another plan: 409 with the new one, nothing done', async () => {
    const world = await worldOfOrphans(4);
    const old = body(await call(world, 'dryRun=true')).digest;
    const late = aMachine(5);
    world.machines.set(`${late.zone}/${late.name}`, late);
    await call(world);
    world.now += 10 * MINUTE;
    world.writes.length = 0;
    const reply = await call(world, `confirm=${old}`);
    expect(reply.status).toBe(409);
    expect(body(reply).code).toBe('PlanChanged');
    expect(world.writes).toEqual([]);
  });

  test('once confirmed still keeps what turns out to have a Proxy', async () => {
    const world = await worldOfOrphans(8);
    const { digest } = body(await call(world, 'dryRun=true'));
    world.beforeGet = () => world.records.set(uidOf(8), aRecord(8));
    await call(world, `confirm=${digest}`);
    expect(world.deleted).toHaveLength(7);
    expect(world.deleted).not.toContain(aMachine(8).name);
  });
});

describe('requests', () => {
  test.each([
    ['dryRun=yes', 400],
    ['dryrun=true', 400],
    ['confirm=', 400],
    ['confirm=abc', 400],
    [`dryRun=true&confirm=${'a'.repeat(64)}`, 400],
    ['dryRun=true&dryRun=false', 400],
    ['dryRun=false', 200],
  ])('?%s is answered %i', async (query, status) => {
    const world = aWorld();
    expect((await call(world, query)).status).toBe(status);
  });

  test.each([
    ['GET', '/health', 200],
    ['GET', '/', 405],
    ['POST', '/other', 404],
  ])('%s %s is answered %i', async (method, path, status) => {
    expect((await call(aWorld(), '', method, path)).status).toBe(status);
  });
});
