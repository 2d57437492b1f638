/** Goal 15: 80 creations wait in one instance. What a waiting pass costs, and how soon it notices that its Proxy changed. */

import { pause } from '#shared/app/wait.ts';
import type { ApiCall } from '#test/compute/calls.ts';

import type { Figure } from '../figure.ts';
import { cpuOf, usageOf } from './instance.ts';
import { gcp, type ProvisionWorld } from './world.ts';

const WAITING = 80;
const OPERATION_MS = 75_000;
const WINDOW_MS = 40_000;
const SAMPLES = 10;

const until = async (
  what: string,
  probe: () => Promise<boolean> | boolean,
  timeoutMs = 60_000,
): Promise<void> => {
  const deadline = performance.now() + timeoutMs;
  while (!(await probe())) {
    if (performance.now() > deadline) throw new Error(`not within ${timeoutMs / 1000} s: ${what}`);
    await pause(20);
  }
};

/** Creates, pushes and does not wait for the answers. */
export const begin = async (world: ProvisionWorld, prefix: string, count: number) => {
  const begun: { readonly name: string; readonly uid: string; readonly answer: Promise<number> }[] = [];
  for (let index = 0; index < count; index += 1) {
    const name = `${prefix}-${index}`;
    const uid = await world.create(name, gcp());
    begun.push({ name, uid, answer: world.push(name, uid) });
  }
  return begun;
};

const clearAway = async (
  world: ProvisionWorld,
  begun: readonly { readonly name: string; readonly uid: string }[],
) => {
  await Promise.all(begun.map(({ name }) => world.remove(name)));
  await Promise.all(begun.map(({ name, uid }) => world.push(name, uid)));
};

const cpuPerMinute = async (pid: number, ms: number): Promise<number> => {
  const [cpu, at] = [cpuOf(pid), performance.now()];
  await pause(ms);
  return ((cpuOf(pid) - cpu) * 60_000) / (performance.now() - at);
};

/** The most lists of one zone within any second. */
export const listsPerSecond = (calls: readonly ApiCall[]): number => {
  const byZone = Map.groupBy(calls, ({ zone }) => zone);
  const most = [...byZone.values()].map((zone) => {
    const times = zone.map(({ at }) => at).toSorted((a, b) => a - b);
    // A timer's millisecond does not make two lists of one second.
    return Math.max(
      ...times
        .map((at, index) => times.slice(index).findIndex((next) => next - at > 950))
        .map((count) => (count < 0 ? 1 : count)),
    );
  });
  return Math.max(0, ...most);
};

const noticing = async (
  some: readonly { readonly name: string; readonly uid: string }[],
  change: (name: string) => Promise<void>,
  isSeen: (uid: string) => Promise<boolean>,
): Promise<number> => {
  const times = await Promise.all(
    some.map(async ({ name, uid }) => {
      await change(name);
      const at = performance.now();
      await until(`${name} is acted upon`, () => isSeen(uid), 120_000);
      return performance.now() - at;
    }),
  );
  return Math.max(...times);
};

export const measureWaiting = async (
  world: ProvisionWorld,
  say: (line: string) => void,
): Promise<readonly Figure[]> => {
  const { compute, inspector, provision } = world;
  const pid = provision.pid();
  say(`warm-up: ${WAITING} creations and deletions`);
  for (const prefix of ['warm', 'warm2']) {
    const warm = await begin(world, prefix, WAITING);
    await Promise.all(warm.map(({ answer }) => answer));
    await clearAway(world, warm);
  }
  await pause(5_000);
  const idle = await usageOf(pid, inspector);
  const idleCpu = await cpuPerMinute(pid, 20_000);

  say(`${WAITING} creations, operations of ${OPERATION_MS / 1000} s`);
  const fault = compute.control.addFault({
    kind: 'slowOperation',
    method: 'instances.insert',
    ms: OPERATION_MS,
  });
  compute.control.resetCalls();
  const begun = await begin(world, 'wait', WAITING);
  const inserts = () => compute.control.countCalls({ method: 'instances.insert' });
  await until('every create call is sent', () => inserts() >= WAITING);
  await pause(3_000);
  if (process.env['BENCH_PROFILE']) await inspector.call('Profiler.enable');
  if (process.env['BENCH_PROFILE']) await inspector.call('Profiler.start');
  const waitingCpu = await cpuPerMinute(pid, WINDOW_MS);
  if (process.env['BENCH_PROFILE']) {
    const { writeFile } = await import('node:fs/promises');
    await writeFile(process.env['BENCH_PROFILE'], JSON.stringify(await inspector.call('Profiler.stop')));
  }
  const waiting = await usageOf(pid, inspector);
  compute.control.removeFault(fault);

  say(`CPU per minute: idle ${idleCpu.toFixed(0)} ms, with ${WAITING} waiting ${waitingCpu.toFixed(0)} ms`);
  const edited = begun.slice(0, SAMPLES);
  const removed = begun.slice(SAMPLES, 2 * SAMPLES);
  const [newer, deletion] = await Promise.all([
    noticing(
      edited,
      (name) => world.edit(name, { maxLeases: 7 }),
      async (uid) => (await world.record(uid))?.generation === 2,
    ),
    noticing(
      removed,
      (name) => world.remove(name),
      async (uid) => (await world.record(uid))?.deleting ?? false,
    ),
  ]);
  const answers = await Promise.all(begun.map(({ answer }) => answer));
  const gets = compute.control.calls({ method: 'instances.get' });
  const untouched = new Set(begun.slice(2 * SAMPLES).map(({ uid }) => uid));
  const machines = await Promise.all(
    [...untouched].map(async (uid) => (await world.record(uid))?.machines[0]?.name),
  );
  const perMachine = machines.map((name) => gets.filter((call) => call.name === name).length);
  const perVm = perMachine.reduce((sum, count) => sum + count, 0) / untouched.size;
  const lists = listsPerSecond(compute.control.calls({ method: 'operations.list' }));
  await clearAway(world, begun);
  const kib = (a: number, b: number): number => (a - b) / WAITING / 1024;
  return [
    {
      goal: 15,
      what: 'CPU per waiting pass and minute',
      value: (waitingCpu - idleCpu) / WAITING,
      target: { atMost: 20 },
      unit: 'ms',
    },
    {
      goal: 15,
      what: 'memory held per waiting pass (after collection)',
      value: kib(waiting.live, idle.live),
      target: { atMost: 64 },
      unit: 'KiB',
    },
    {
      goal: 15,
      what: 'resident memory per waiting pass',
      value: kib(waiting.rss, idle.rss),
      target: { atMost: 64 },
      unit: 'KiB',
    },
    {
      goal: 15,
      what: 'a newer generation is acted upon, worst of 10',
      value: newer / 1000,
      target: { atMost: 5 },
      unit: 's',
    },
    {
      goal: 15,
      what: 'a deletion is acted upon, worst of 10',
      value: deletion / 1000,
      target: { atMost: 5 },
      unit: 's',
    },
    {
      goal: 15,
      what: 'instances.get per created machine',
      value: perVm,
      target: { atMost: 1 },
      unit: 'calls',
    },
    {
      goal: 15,
      what: 'instances.insert per creation',
      value: inserts() / WAITING,
      target: { atMost: 1 },
      unit: 'calls',
    },
    {
      goal: 15,
      what: 'operation lists per zone within any second, at most',
      value: lists,
      target: { atMost: 1 },
      unit: 'calls',
    },
    {
      goal: 15,
      what: 'pushes refused',
      value: answers.filter((status) => status >= 300).length,
      target: { atMost: 0 },
      unit: '',
    },
  ];
};
