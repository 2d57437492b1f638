import { describe, expect, it } from 'vitest';

import { judge } from './parts.ts';
import { call } from './passes.ts';
import { condition, count, setType, settle } from './settle.ts';
import { deleteProxy, newWorld } from './world.ts';

describe('one Proxy', () => {
  it('is created with one insert and one read of its machine, and two status patches', async () => {
    const world = newWorld();
    await call(world);
    expect(count(world, 'create')).toBe(1);
    expect(count(world, 'get')).toBe(1);
    expect(count(world, 'patchStatus')).toBe(2);
    expect(condition(world, 'Provisioned')?.status).toBe('True');
    judge(world, 'Healthy');
    await call(world);
    expect(condition(world, 'Ready')?.status).toBe('True');
    expect(world.record?.value).not.toHaveProperty('wakeAt');
    expect(world.violations).toEqual([]);
  });

  it('is left alone by further messages once it has converged (W6, K1)', async () => {
    const world = newWorld();
    await settle(world);
    const before = world.calls.length;
    await call(world);
    expect(world.calls.slice(before)).toEqual(['get', 'pass:isServing']);
  });

  it('has exactly one machine when its call is killed after any effect, and delivered again (W2, row 21)', async () => {
    for (let at = 0; at < 14; at += 1) {
      const world = newWorld();
      world.faults.push({ kind: 'crash', in: at });
      await call(world);
      world.now += 5_000;
      await settle(world);
      expect(count(world, 'create'), `killed at effect ${at}`).toBeLessThanOrEqual(2);
      expect([...world.machines.values()], `killed at effect ${at}`).toMatchObject([{ state: 'running' }]);
      expect(world.violations).toEqual([]);
    }
  });

  it('adopts the machine of a create call whose answer was lost (row 42)', async () => {
    const world = newWorld();
    world.faults.push({ kind: 'lostAnswer' });
    expect(await call(world)).toBe('retry');
    await settle(world);
    expect(count(world, 'create')).toBe(1);
    expect(world.machines.size).toBe(1);
  });

  it('sends one delete call for a machine, however slow it goes (W1)', async () => {
    const world = newWorld();
    await settle(world);
    deleteProxy(world);
    for (let round = 0; round < 5; round += 1) await call(world, false);
    expect(count(world, 'delete')).toBe(1);
    await settle(world);
    expect(count(world, 'delete')).toBe(1);
    expect(world.proxy).toBeUndefined();
    expect(world.record?.value.gone).toBe(true);
  });

  it('is replaced without a moment in which nothing serves', async () => {
    const world = newWorld();
    await settle(world);
    const first = world.record?.value.serving?.endpoint.host;
    setType(world, 'e2-small');
    await call(world);
    expect(world.record?.value.serving?.endpoint.host).toBe(first);
    expect(world.machines.size).toBe(2);
    judge(world, 'Healthy');
    await settle(world);
    expect(world.machines.size).toBe(1);
    expect(world.record?.value.serving?.endpoint.host).not.toBe(first);
    expect(condition(world, 'Ready')?.status).toBe('True');
    expect(world.violations).toEqual([]);
  });

  it('keeps the old machine until its lease has ended, or the drain has', async () => {
    const world = newWorld();
    await settle(world);
    const old = world.record?.value.serving?.endpoint.id ?? '';
    world.leases.set(old, world.now + 40_000);
    setType(world, 'e2-small');
    await call(world);
    judge(world, 'Healthy');
    await call(world);
    expect(world.machines.size).toBe(2);
    world.leases.delete(old);
    await settle(world);
    expect(world.machines.size).toBe(1);
  });
});
