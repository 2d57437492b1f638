import { describe, expect, test } from 'vitest';

import { MINUTE, aMachine, aRecord, aTombstone, uidOf } from './builders.ts';
import { aWorld, call } from './fakes.ts';
import { body, orphan, worldOfOrphans } from './runs.ts';

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
