/** Goal 16: what a steady run of gc costs. `BENCH_OBJECTS=2000` measures a smaller fleet. */

import type { HttpReply } from '#shared/app/http.ts';

import type { Bench, BenchContext, Figure } from '../figure.ts';
import { heapInUse } from '../heap.ts';
import { startGcWorld, type GcWorld } from '../gc/world.ts';

/** As many machines as one page of a list may have. */
const PAGE = 500;
/** Runs whose memory is compared, after some that make the process warm. */
const WARM_RUNS = 5;
const RUNS = 20;
/** What the function has in production beside a process that does nothing yet, in MiB: 1,024 and some 110. */
const MEMORY_MIB = 900;

interface Spent {
  readonly lists: number;
  readonly reads: number;
  readonly writes: number;
  readonly nudges: number;
  readonly ms: number;
}

const mustBeOk = ({ status, body }: HttpReply): void => {
  if (status !== 200) throw new Error(`gc answered ${status}: ${JSON.stringify(body).slice(0, 500)}`);
};

const spentBy = async (world: GcWorld): Promise<Spent> => {
  const before = { ...world.count() };
  const began = performance.now();
  mustBeOk(await world.run());
  const after = world.count();
  return {
    lists: after.lists - before.lists,
    reads: after.reads - before.reads,
    writes: after.writes - before.writes,
    nudges: after.nudges - before.nudges,
    ms: performance.now() - began,
  };
};

const steady = async (world: GcWorld, objects: number, { say }: BenchContext): Promise<readonly Figure[]> => {
  const all: Spent[] = [];
  for (let run = 0; run < WARM_RUNS; run += 1) all.push(await spentBy(world));
  for (let run = 0; run < WARM_RUNS; run += 1) mustBeOk(await world.bareRun());
  const before = heapInUse();
  for (let run = 0; run < RUNS; run += 1) mustBeOk(await world.bareRun());
  const growth = heapInUse() / before;
  const most = (what: keyof Spent): number => Math.max(...all.map((spent) => spent[what]));
  say(`  a steady run takes ${Math.round(most('ms'))} ms at most`);
  const at = `, ${objects} machines and Proxies`;
  return [
    {
      goal: 16,
      what: `list calls per run${at}`,
      value: most('lists'),
      target: { atMost: Math.ceil(objects / PAGE) },
      unit: '',
    },
    {
      goal: 16,
      what: `documents read per steady run${at}`,
      value: most('reads'),
      // The index, one for what has changed, one for sightings and one for the cluster.
      target: { atMost: Math.max(4, Math.ceil(objects / 1000)) },
      unit: '',
    },
    { goal: 16, what: `writes per steady run${at}`, value: most('writes'), target: { atMost: 0 }, unit: '' },
    { goal: 16, what: `nudges per steady run${at}`, value: most('nudges'), target: { atMost: 0 }, unit: '' },
    {
      goal: 16,
      what: `time of a steady run, to the minute between two${at}`,
      value: most('ms') / 60_000,
      target: { atMost: 0.5 },
      unit: 'x',
    },
    {
      goal: 16,
      what: `heap after ${RUNS} more runs, to the heap before${at}`,
      value: growth,
      target: { atMost: 1.1 },
      unit: 'x',
    },
    {
      goal: 16,
      what: `memory that gc adds to the process, to what the function has for it${at}`,
      value: (process.memoryUsage.rss() - world.rssBefore) / 1024 / 1024 / MEMORY_MIB,
      target: { atMost: 1 },
      unit: 'x',
    },
  ];
};

const CHANGES = 15;

/** Changed records are read once more each, and not every Proxy for their sake. */
const changed = async (world: GcWorld): Promise<readonly Figure[]> => {
  const { reads: without } = await spentBy(world);
  await world.change(CHANGES);
  const { reads, nudges } = await spentBy(world);
  return [
    {
      goal: 16,
      what: `documents read beside those of a steady run, per record that changed`,
      value: (reads - without) / CHANGES,
      target: { atMost: 1 },
      unit: '',
    },
    {
      goal: 16,
      what: 'nudges per record that is due',
      value: nudges / CHANGES,
      target: { atMost: 1 },
      unit: '',
    },
  ];
};

/** Boot disks are listed once an hour, as whoever asks for the plan has them listed. */
const hourly = async (world: GcWorld, objects: number): Promise<Figure> => {
  const before = world.count().diskLists;
  mustBeOk(await world.dryRun());
  return {
    goal: 16,
    what: `list calls of boot disks, once an hour, ${objects} disks`,
    value: world.count().diskLists - before,
    target: { atMost: Math.ceil(objects / PAGE) },
    unit: '',
  };
};

export const bench: Bench = async (context) => {
  const objects = Number(process.env['BENCH_OBJECTS'] ?? 10_000);
  const world = await startGcWorld(objects, context.say);
  try {
    // First, since from then on the client of disks is in memory, whatever minute of the hour it is.
    const disks = await hourly(world, objects);
    return [...(await steady(world, objects, context)), ...(await changed(world)), disks];
  } finally {
    await world.stop();
  }
};
