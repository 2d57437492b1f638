import { array, assert, asyncProperty } from 'fast-check';
import { describe, expect, it } from 'vitest';

import { advance } from './fake-cloud.ts';
import { happen, happening } from './happenings.ts';
import { condition, settle } from './settle.ts';
import { newWorld, type World } from './world.ts';

const of = (world: World, installation: string) =>
  [...world.machines.values()].filter((machine) => machine.installation === installation);

/** What is left when everything has come to rest, as one value. */
const summary = (world: World) => ({
  violations: world.violations,
  machines: of(world, 'prod').map(({ state, name, address }) => ({ state, name, address })),
  disks: [...world.disks.keys()],
  strangersStopped: of(world, 'other').filter(({ state }) => state !== 'running'),
  ready: condition(world, 'Ready')?.status,
  observedGeneration: world.proxy?.status?.observedGeneration,
  record: world.record && {
    gone: world.record.value.gone,
    serving: world.record.value.serving?.endpoint.host,
    candidate: world.record.value.candidate,
    draining: world.record.value.draining,
    machines: world.record.value.machines.map(({ name }) => name),
    wakeAt: world.record.value.wakeAt,
  },
});

/** One machine, the one that the Proxy describes, and everything says so; or, without a Proxy, nothing at all. */
const expected = (world: World): ReturnType<typeof summary> => {
  const [machine] = of(world, 'prod');
  const address = machine?.address ?? 'an address';
  const name = machine?.name ?? 'a name';
  return world.proxy
    ? {
        violations: [],
        machines: [{ state: 'running', name, address }],
        disks: [],
        strangersStopped: [],
        ready: 'True',
        observedGeneration: world.proxy.metadata.generation,
        record: {
          gone: false,
          serving: address,
          candidate: undefined,
          draining: [],
          machines: [name],
          wakeAt: undefined,
        },
      }
    : {
        violations: [],
        machines: [],
        disks: [],
        strangersStopped: [],
        ready: undefined,
        observedGeneration: undefined,
        record: world.record && {
          gone: true,
          serving: undefined,
          candidate: undefined,
          draining: [],
          machines: [],
          wakeAt: undefined,
        },
      };
};

describe('whatever happens, in any order', () => {
  it('ends with exactly the machine that the Proxy describes, and never deletes what is published', async () => {
    // A failure prints its seed and the shortest history that it could find.
    await assert(
      asyncProperty(array(happening, { minLength: 3, maxLength: 40 }), async (events) => {
        const world = newWorld();
        for (const event of events) await happen(world, event);
        world.faults.length = 0;
        world.now += 600_000;
        advance(world);
        await settle(world);
        expect(summary(world)).toEqual(expected(world));
      }),
      { numRuns: 150, interruptAfterTimeLimit: 20_000, markInterruptAsFailure: false },
    );
  }, 60_000);
});
