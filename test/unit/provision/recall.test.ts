import { describe, expect, it } from 'vitest';

import type { Machine } from '#shared/domain/machine.ts';
import { machineName } from '#shared/domain/names.ts';

import { call } from './passes.ts';
import { count, settle, setType } from './settle.ts';
import { UID, deleteProxy, newWorld, type World } from './world.ts';

const OLD_HASH = 'ffffffffffff';

const stray = (change: Partial<Machine> = {}): Machine => {
  const name = machineName('prod', UID, OLD_HASH, 7);
  const zone = 'europe-west1-b';
  return {
    name,
    zone,
    instanceId: 'i-stray',
    providerID: `gce://p/${zone}/${name}`,
    state: 'running',
    address: '203.0.113.99',
    installation: 'prod',
    uid: UID,
    hash: OLD_HASH,
    createdAt: 0,
    ...change,
  };
};

const add = (world: World, machine: Machine): void =>
  void world.machines.set(`${machine.zone}/${machine.name}`, machine);

const names = (world: World): readonly string[] => [...world.machines.values()].map(({ name }) => name);

const converged = async (): Promise<World> => {
  const world = newWorld();
  await settle(world);
  return world;
};

describe('a Proxy whose record was lost', () => {
  it('has its machine again, and asks for no other', async () => {
    const world = await converged();
    const [before] = names(world);
    world.record = undefined;
    await settle(world);
    expect(names(world)).toEqual([before]);
    expect(count(world, 'create')).toBe(1);
    expect(world.record).toMatchObject({ value: { serving: { machine: before } } });
    expect(world.violations).toEqual([]);
  });

  it('has its machine again under whatever incarnation it was, and never gives that number twice', async () => {
    const world = await converged();
    setType(world, 'b');
    await settle(world);
    setType(world, 'a');
    await settle(world);
    const [before = ''] = names(world);
    const incarnation = world.record?.value.incarnation;
    expect(incarnation).toBeGreaterThan(1);
    world.record = undefined;
    await settle(world);
    expect(names(world)).toEqual([before]);
    expect(world.record).toMatchObject({ value: { incarnation } });
  });

  it('is rid of older machines, and of credentials that no endpoint has', async () => {
    const world = await converged();
    add(world, stray());
    world.credentials.set('e-old', { username: 'u', password: 'p' });
    world.record = undefined;
    await settle(world);
    expect(names(world)).toHaveLength(1);
    expect(names(world)).not.toContain(stray().name);
    expect([...world.credentials]).toEqual([]);
  });

  it('takes all of them along when it is deleted', async () => {
    const world = await converged();
    add(world, stray());
    world.record = undefined;
    deleteProxy(world);
    await settle(world);
    expect(world.proxy).toBeUndefined();
    expect(names(world)).toEqual([]);
  });

  it('closes its gate for good when nothing but that is left, and it is deleted (B1)', async () => {
    const world = await converged();
    world.record = undefined;
    world.machines.clear();
    deleteProxy(world);
    await settle(world);
    expect(world).toMatchObject({ proxy: undefined, gate: false, violations: [] });
  });

  it('leaves nothing behind when it is gone itself: gate and credentials go, its machines are left to gc', async () => {
    const world = await converged();
    world.credentials.set('e-old', { username: 'u', password: 'p' });
    world.record = undefined;
    world.proxy = undefined;
    await call(world);
    expect([...world.credentials]).toEqual([]);
    expect(world.gate).toBe(false);
    expect(names(world)).toHaveLength(1);
  });
});

describe('a machine that the record does not know', () => {
  it('is cleared away when gc has found it', async () => {
    const world = await converged();
    add(world, stray());
    await call(world);
    expect(names(world)).toHaveLength(2);
    await call(world, true, true);
    await settle(world);
    expect(names(world)).toHaveLength(1);
    expect(names(world)).not.toContain(stray().name);
    expect(world.violations).toEqual([]);
  });

  it.each([
    ['carries another UID', { uid: 'ffffffff-ffff-4fff-8fff-ffffffffffff' }],
    ['has a name that we do not give', { name: 'prod-by-hand-1' }],
    ['has another hash than its name says', { hash: '0000' }],
  ])('stays when it %s', async (_, change) => {
    const world = await converged();
    add(world, stray(change));
    await call(world, true, true);
    await settle(world);
    expect(names(world)).toHaveLength(2);
  });

  it('is looked for no more than once in a call, and not at all in an ordinary one', async () => {
    const world = await converged();
    let lists = 0;
    const machines = world.machines.values.bind(world.machines);
    world.machines.values = () => {
      lists += 1;
      return machines();
    };
    await call(world);
    expect(lists).toBe(0);
    await call(world, true, true);
    expect(lists).toBe(1);
  });
});
