import { describe, expect, it } from 'vitest';

import type { Machine } from '#shared/domain/machine.ts';
import { machineName } from '#shared/domain/names.ts';

import { newMemory } from '../../../functions/provision/memory.ts';
import { onePass } from '../../../functions/provision/pass.ts';

import { REF } from './builders.ts';
import { fakeProvider } from './fake-cloud.ts';
import { partsOf } from './parts.ts';
import { call } from './passes.ts';
import { count, settle, setType } from './settle.ts';
import { UID, deleteProxy, newWorld, storeRecord, type World } from './world.ts';

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

const addTwin = (world: World): void => {
  const [machine] = world.machines.values();
  if (machine)
    add(world, { ...machine, zone: 'europe-west1-c', instanceId: 'i-twin', address: '203.0.113.240' });
};

const afterwards = async (world: World): Promise<void> => {
  for (let round = 0; round < 3; round += 1) {
    await call(world, true, true);
    await settle(world);
    world.now += 300_000;
  }
};

describe('two machines of one name, in two zones', () => {
  it.each([
    ['its record was lost', true],
    ['its record names one of the zones', false],
  ])('leave a Proxy with the one that it serves from when %s', async (_, lost) => {
    const world = await converged();
    addTwin(world);
    if (lost) world.record = undefined;
    await afterwards(world);
    const served = world.record?.value.serving?.endpoint.instanceId;
    expect([...world.machines.values()].map(({ instanceId }) => instanceId)).toEqual([served]);
    expect(world.record?.value.machines).toHaveLength(1);
    expect(world.violations).toEqual([]);
  });
});

const deletedPass = async (coverage: { unknownZones: readonly string[]; partial: boolean }) => {
  const world = await converged();
  world.record = undefined;
  deleteProxy(world);
  const parts = partsOf(world);
  const list = async () => ({ machines: [], ...coverage });
  const providers = { gcp: { ...fakeProvider(world), list } };
  return { world, pass: onePass({ ...parts, providers }, REF, newMemory(), undefined) };
};

describe('a Proxy that is deleted after its record was lost', () => {
  it.each([
    ['a zone was not seen', { unknownZones: ['europe-west1-b'], partial: false }],
    ['the list is not complete', { unknownZones: [], partial: true }],
  ])('stays as long as %s, since its machines may be there (K3)', async (_, coverage) => {
    const { world, pass } = await deletedPass(coverage);
    await expect(pass).rejects.toMatchObject({ code: 'Transient' });
    expect(world.proxy).toBeDefined();
    expect(world.violations).toEqual([]);
  });
});

it('A living Proxy takes over a tombstone out of an old backup: it is listed and leased again', async () => {
  const world = await converged();
  const value = world.record?.value;
  if (!value) throw new Error('nothing was recorded');
  const { serving: _withdrawn, ...rest } = value;
  storeRecord(world, { ...rest, machines: [], gone: true });
  await settle(world);
  expect(world.record?.value).toMatchObject({ gone: false, serving: { endpoint: {} } });
  expect(world.violations).toEqual([]);
});
