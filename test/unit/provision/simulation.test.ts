import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { call } from './passes.ts';
import { advance, deleteProxy, editSpec, gcpSpec, judge, newWorld, type Fault, type World } from './world.ts';

const count = (world: World, name: string): number => world.calls.filter((each) => each === name).length;
const condition = (world: World, type: string) =>
  world.proxy?.status?.conditions?.find((each) => each.type === type);
const setType = (world: World, machineType: string): void =>
  editSpec(world, (spec) => (spec.gcp ? { ...spec, gcp: { ...spec.gcp, machineType } } : spec));

/** Nudges as gc and health send them, until nothing waits any more. */
const settle = async (world: World): Promise<void> => {
  for (let round = 0; round < 60; round += 1) {
    await call(world);
    const { wakeAt } = world.record?.value ?? {};
    const unjudged = world.record?.value.serving?.verdict.state !== 'Healthy' || world.record.value.candidate;
    judge(world, 'Healthy');
    if (wakeAt === undefined && !unjudged) break;
    if (!world.proxy) break;
    world.now = Math.max(world.now, wakeAt ?? 0) + 1;
  }
  await call(world);
};

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

type Happening =
  | { readonly do: 'type'; readonly to: string }
  | { readonly do: 'strategy'; readonly to: 'RollingUpdate' | 'Recreate' }
  | { readonly do: 'fault'; readonly fault: Fault }
  | {
      readonly do: 'machine';
      readonly what: 'stop' | 'vanish' | 'readdress' | 'stranger';
      readonly index: number;
    }
  | { readonly do: 'lease'; readonly ms: number }
  | { readonly do: 'judge'; readonly state: 'Healthy' | 'Unhealthy' }
  | { readonly do: 'operations' }
  | { readonly do: 'call'; readonly patient: boolean }
  | { readonly do: 'later'; readonly ms: number }
  | { readonly do: 'delete' };

const fault: fc.Arbitrary<Fault> = fc.oneof(
  fc.record({ kind: fc.constant('crash' as const), in: fc.integer({ min: 0, max: 8 }) }),
  fc.record({ kind: fc.constant('lostAnswer' as const) }),
  fc.record({
    kind: fc.constant('refuse' as const),
    code: fc.constantFrom(
      'CapacityUnavailable' as const,
      'QuotaExceeded' as const,
      'InvalidSpec' as const,
      'Unauthorised' as const,
      'NotFound' as const,
    ),
  }),
  fc.record({
    kind: fc.constant('failOperation' as const),
    code: fc.constantFrom('CapacityUnavailable' as const, 'QuotaExceeded' as const, 'Transient' as const),
  }),
);

const happening: fc.Arbitrary<Happening> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('type' as const), to: fc.constantFrom('a', 'b', 'c') }),
  },
  fc.record({
    do: fc.constant('strategy' as const),
    to: fc.constantFrom('RollingUpdate' as const, 'Recreate' as const),
  }),
  { weight: 3, arbitrary: fc.record({ do: fc.constant('fault' as const), fault }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('machine' as const),
      what: fc.constantFrom('stop' as const, 'vanish' as const, 'readdress' as const, 'stranger' as const),
      index: fc.nat({ max: 3 }),
    }),
  },
  fc.record({ do: fc.constant('lease' as const), ms: fc.integer({ min: 1_000, max: 90_000 }) }),
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('judge' as const),
      state: fc.constantFrom('Healthy' as const, 'Unhealthy' as const),
    }),
  },
  fc.record({ do: fc.constant('operations' as const) }),
  { weight: 6, arbitrary: fc.record({ do: fc.constant('call' as const), patient: fc.boolean() }) },
  fc.record({ do: fc.constant('later' as const), ms: fc.integer({ min: 1_000, max: 600_000 }) }),
  { weight: 1, arbitrary: fc.record({ do: fc.constant('delete' as const) }) },
);

const touchMachine = (world: World, what: string, index: number): void => {
  const [key, machine] = [...world.machines][index] ?? [];
  if (key === undefined || !machine || machine.uid !== world.proxy?.metadata.uid) return;
  const { address: _old, ...rest } = machine;
  if (what === 'vanish') world.machines.delete(key);
  else if (what === 'stop' && machine.state === 'running')
    world.machines.set(key, { ...rest, state: 'stopped' });
  else if (what === 'readdress' && machine.state === 'running')
    world.machines.set(key, { ...machine, address: `198.51.100.${(world.counter += 1) % 250}` });
  else if (what === 'stranger' && world.faults.length < 3)
    world.machines.set(`europe-west1-b/stranger-${index}`, {
      ...rest,
      name: `stranger-${index}`,
      instanceId: `x-${index}`,
      installation: 'other',
      state: 'running',
    });
};

const happen = async (world: World, event: Happening): Promise<void> => {
  switch (event.do) {
    case 'type':
      return setType(world, event.to);
    case 'strategy':
      return editSpec(world, (spec) => ({ ...spec, updateStrategy: { type: event.to } }));
    case 'fault':
      world.faults.push(event.fault);
      return undefined;
    case 'machine':
      return touchMachine(world, event.what, event.index);
    case 'lease': {
      const serving = world.record?.value.serving;
      if (serving) world.leases.set(serving.endpoint.id, world.now + event.ms);
      return undefined;
    }
    case 'judge':
      return judge(world, event.state);
    case 'operations':
      world.now += 20_000;
      advance(world);
      return undefined;
    case 'call':
      await call(world, event.patient);
      return undefined;
    case 'later':
      world.now += event.ms;
      return undefined;
    case 'delete':
      return deleteProxy(world);
    default:
      return event satisfies never;
  }
};

describe('whatever happens, in any order', () => {
  it('ends with exactly the machine that the Proxy describes, and never deletes what is published', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(happening, { minLength: 3, maxLength: 40 }), async (events) => {
        const world = newWorld(gcpSpec());
        for (const event of events) await happen(world, event);
        world.faults.length = 0;
        world.now += 600_000;
        advance(world);
        await settle(world);

        expect(world.violations).toEqual([]);
        const strangers = [...world.machines.values()].filter(({ installation }) => installation === 'other');
        const ours = [...world.machines.values()].filter(({ installation }) => installation === 'prod');
        expect(strangers.every(({ state }) => state === 'running')).toBe(true);
        if (world.proxy) {
          expect(ours).toMatchObject([{ state: 'running' }]);
          expect(world.record?.value).toMatchObject({
            serving: { endpoint: { host: ours[0]?.address, instanceId: ours[0]?.instanceId } },
            draining: [],
            machines: [{ name: ours[0]?.name }],
          });
          expect(world.record?.value).not.toHaveProperty('candidate');
          expect(world.record?.value).not.toHaveProperty('wakeAt');
          expect(condition(world, 'Ready')?.status).toBe('True');
          expect(world.proxy.status?.observedGeneration).toBe(world.proxy.metadata.generation);
        } else {
          expect(ours).toEqual([]);
          if (world.record) expect(world.record.value.gone).toBe(true);
        }
      }),
      { numRuns: 150, interruptAfterTimeLimit: 20_000, verbose: 1 },
    );
  }, 60_000);
});
