/** What may happen to a Proxy and its machines, in any order. */

import { boolean, constant, constantFrom, integer, nat, oneof, record, type Arbitrary } from 'fast-check';

import type { Machine } from '#shared/domain/machine.ts';

import { UID } from './builders.ts';
import { advance } from './fake-cloud.ts';
import { judge } from './parts.ts';
import { call } from './passes.ts';
import { setType } from './settle.ts';
import { deleteProxy, editSpec, nextNumber, type Fault, type World } from './world.ts';

type Fate = 'stop' | 'vanish' | 'readdress';

export type Happening =
  | { readonly do: 'type'; readonly to: string }
  | { readonly do: 'strategy'; readonly to: 'RollingUpdate' | 'Recreate' }
  | { readonly do: 'fault'; readonly fault: Fault }
  | { readonly do: 'machine'; readonly fate: Fate; readonly index: number }
  | { readonly do: 'stranger'; readonly index: number }
  | { readonly do: 'lease'; readonly ms: number }
  | { readonly do: 'judge'; readonly state: 'Healthy' | 'Unhealthy' }
  | { readonly do: 'call'; readonly patient: boolean }
  | { readonly do: 'later'; readonly ms: number }
  | { readonly do: 'delete' };

const fault: Arbitrary<Fault> = oneof(
  record({ kind: constant('crash' as const), in: integer({ min: 0, max: 8 }) }),
  record({ kind: constant('lostAnswer' as const) }),
  record({ kind: constant('keptDisk' as const) }),
  record({
    kind: constant('refuse' as const),
    code: constantFrom(
      'CapacityUnavailable' as const,
      'QuotaExceeded' as const,
      'InvalidSpec' as const,
      'Unauthorised' as const,
      'NotFound' as const,
    ),
  }),
  record({
    kind: constant('failOperation' as const),
    code: constantFrom('CapacityUnavailable' as const, 'QuotaExceeded' as const, 'Transient' as const),
  }),
);

export const happening: Arbitrary<Happening> = oneof(
  {
    weight: 3,
    arbitrary: record({ do: constant('type' as const), to: constantFrom('a', 'b', 'c') }),
  },
  record({
    do: constant('strategy' as const),
    to: constantFrom('RollingUpdate' as const, 'Recreate' as const),
  }),
  { weight: 3, arbitrary: record({ do: constant('fault' as const), fault }) },
  {
    weight: 2,
    arbitrary: record({
      do: constant('machine' as const),
      fate: constantFrom('stop' as const, 'vanish' as const, 'readdress' as const),
      index: nat({ max: 3 }),
    }),
  },
  record({ do: constant('stranger' as const), index: nat({ max: 3 }) }),
  record({ do: constant('lease' as const), ms: integer({ min: 1_000, max: 90_000 }) }),
  {
    weight: 2,
    arbitrary: record({
      do: constant('judge' as const),
      state: constantFrom('Healthy' as const, 'Unhealthy' as const),
    }),
  },
  { weight: 6, arbitrary: record({ do: constant('call' as const), patient: boolean() }) },
  record({ do: constant('later' as const), ms: integer({ min: 1_000, max: 600_000 }) }),
  { weight: 1, arbitrary: record({ do: constant('delete' as const) }) },
);

/** What can become of a machine of ours behind our back; undefined: it is gone. */
const FATES: Readonly<Record<Fate, (machine: Machine, world: World) => Machine | undefined>> = {
  vanish: () => undefined,
  stop: ({ address: _gone, ...machine }) =>
    machine.state === 'running' ? { ...machine, state: 'stopped' } : machine,
  readdress: (machine, world) =>
    machine.state === 'running' ? { ...machine, address: `198.51.100.${nextNumber(world) % 250}` } : machine,
};

const touchMachine = (world: World, fate: Fate, index: number): void => {
  const [key, machine] = [...world.machines][index] ?? [];
  if (key === undefined || machine?.installation !== 'prod') return;
  const after = FATES[fate](machine, world);
  if (after) world.machines.set(key, after);
  else world.machines.delete(key);
};

/** Another installation's machine, with everything else like one of ours. */
const addStranger = (world: World, index: number): void => {
  const name = `stranger-${index}`;
  world.machines.set(`europe-west1-b/${name}`, {
    name,
    zone: 'europe-west1-b',
    instanceId: `x-${index}`,
    providerID: `gce://project/europe-west1-b/${name}`,
    state: 'running',
    installation: 'other',
    uid: UID,
  });
};

const lease = (world: World, ms: number): void => {
  const serving = world.record?.value.serving;
  if (serving) world.leases.set(serving.endpoint.id, world.now + ms);
};

const pass = (world: World, ms: number): void => {
  world.now += ms;
  advance(world);
};

export const happen = async (world: World, event: Happening): Promise<void> => {
  switch (event.do) {
    case 'type':
      return setType(world, event.to);
    case 'strategy':
      return editSpec(world, (spec) => ({ ...spec, updateStrategy: { type: event.to } }));
    case 'fault':
      return void world.faults.push(event.fault);
    case 'machine':
      return touchMachine(world, event.fate, event.index);
    case 'stranger':
      return addStranger(world, event.index);
    case 'lease':
      return lease(world, event.ms);
    case 'judge':
      return judge(world, event.state);
    case 'call':
      return void (await call(world, event.patient));
    case 'later':
      return pass(world, event.ms);
    case 'delete':
      return deleteProxy(world);
    default:
      return event satisfies never;
  }
};
