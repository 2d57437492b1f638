/** What a machine costs in calls to the provider: made, replaced, deleted. */

import { uidBase36 } from '#shared/domain/names.ts';

import type { Figure } from '../figure.ts';
import { gcp, type ProvisionWorld } from './world.ts';

const PROXIES = 20;

/** Calls of a life, from the log. Lists of operations are shared by all, and counted elsewhere. */
const LIMITS: Readonly<Record<string, readonly [method: string, atMost: number][]>> = {
  created: [
    ['instances.insert', 1],
    ['instances.get', 1],
  ],
  replaced: [
    ['instances.insert', 1],
    ['instances.delete', 1],
  ],
  deleted: [['instances.delete', 1]],
};

interface Counted {
  readonly name: string;
  readonly uid: string;
}

export const measureCounts = async (world: ProvisionWorld): Promise<readonly Figure[]> => {
  const { control } = world.compute;
  const proxies = await Promise.all(
    Array.from({ length: PROXIES }, async (_, index) => {
      const name = `counted-${index}`;
      return { name, uid: await world.create(name, gcp()) };
    }),
  );
  const each = (work: (name: string, uid: string) => Promise<unknown>): Promise<unknown> =>
    Promise.all(proxies.map(({ name, uid }) => work(name, uid)));
  const keys = proxies.map(({ uid }) => uidBase36(uid));
  const count = (phase: string): readonly Figure[] => {
    const ours = control.calls().filter(({ name }) => keys.some((key) => name?.includes(key)));
    const methods = new Set([
      ...ours.map(({ method }) => method),
      ...(LIMITS[phase] ?? []).map(([method]) => method),
    ]);
    return [...methods].toSorted().map((method) => {
      const limit = LIMITS[phase]?.find(([name]) => name === method);
      const value = ours.filter((call) => call.method === method).length / PROXIES;
      return {
        goal: limit ? 15 : 0,
        what: `${method} per ${phase} machine`,
        value,
        target: { atMost: limit?.[1] ?? 10 },
        unit: 'calls',
      };
    });
  };
  const phase = async (name: string, work: () => Promise<void>): Promise<readonly Figure[]> => {
    control.resetCalls();
    await work();
    return count(name);
  };
  const created = await phase('created', async () => {
    await each((name, uid) => world.push(name, uid));
  });
  await each((_, uid) => world.judge(uid, 'Healthy'));
  await each((name, uid) => world.push(name, uid));
  const servingMachine = async (uid: string) => (await world.record(uid))?.serving?.machine;
  const first = new Map(
    await Promise.all(proxies.map(async ({ uid }) => [uid, await servingMachine(uid)] as const)),
  );
  const isReplaced = async (uid: string): Promise<boolean> => {
    const { machines = [], serving } = (await world.record(uid)) ?? {};
    return (
      machines.length === 1 && machines[0]?.name === serving?.machine && serving?.machine !== first.get(uid)
    );
  };
  const replaced = await phase('replaced', async () => {
    await each((name) => world.edit(name, gcp({}, { machineType: 'e2-small' })));
    await each((name, uid) => world.push(name, uid));
    // A share of them at a time: those that wait are nudged when others are done, as gc does by the minute.
    const deadline = performance.now() + 240_000;
    let waiting: readonly Counted[] = proxies;
    while (waiting.length > 0) {
      if (performance.now() > deadline) throw new Error(`${waiting.length} were not replaced in time`);
      await Promise.all(waiting.map(({ uid }) => world.judge(uid, 'Healthy')));
      await Promise.all(waiting.map(({ name, uid }) => world.push(name, uid)));
      const left = await Promise.all(
        waiting.map(async (proxy) => ((await isReplaced(proxy.uid)) ? [] : [proxy])),
      );
      waiting = left.flat();
    }
  });
  const deleted = await phase('deleted', async () => {
    await each((name) => world.remove(name));
    await each((name, uid) => world.push(name, uid));
  });
  return [...created, ...replaced, ...deleted];
};
