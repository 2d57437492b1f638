/** Goals 1 to 5, 7 and 8: what leases and lists cost, as counts, and as ratios to bare writes of the same database. */

import type { Bench, Figure } from '../figure.ts';
import { acquireAndRelease, inProcess, median, rateOf, timed } from '../leases/calls.ts';
import { difference, noCounts } from '../leases/counting.ts';
import { processes } from '../leases/processes.ts';
import { sideBySide } from '../leases/side-by-side.ts';
import { startWorld, type World } from '../leases/world.ts';
import { measureParts, type Parts } from '../parts.ts';

/** Goals 1 and 8. */
const bySize = async (world: World, size: number): Promise<readonly Figure[]> => {
  const fleet = world.fleet();
  await fleet.addProxies(size, 5);
  await fleet.showSettledViews();
  const { handler, counts } = fleet.instance();
  const query = new URLSearchParams();
  await handler({ method: 'GET', path: '/v1/proxies', query, headers: {}, body: new Uint8Array() });
  const listReads = counts.fleetReads + counts.reads;
  const client = inProcess(handler);
  for (let round = 0; round < 50; round += 1) await acquireAndRelease(client);
  const spent = noCounts();
  const acquires = 200;
  for (let round = 0; round < acquires; round += 1) {
    const before = { ...counts };
    const { leaseId } = await client.acquire();
    const { reads, writes, calls } = difference(counts, before);
    spent.reads += reads;
    spent.writes += writes;
    spent.calls += calls;
    await client.release(leaseId);
  }
  const at = `, ${size} proxies`;
  const per = (count: number): number => count / acquires;
  return [
    {
      goal: 1,
      what: `documents read per warm acquire${at}`,
      value: per(spent.reads),
      target: { atMost: 0 },
      unit: '',
    },
    {
      goal: 1,
      what: `writes per warm acquire${at}`,
      value: per(spent.writes),
      target: { atMost: 1 },
      unit: '',
    },
    {
      goal: 1,
      what: `calls per warm acquire${at}`,
      value: per(spent.calls),
      target: { atMost: 1 },
      unit: '',
    },
    {
      goal: 8,
      what: `documents read by the first list of an instance${at}`,
      // The views, and one for the query for changes, which finds none.
      value: listReads,
      target: { atMost: size <= 1_000 ? 2 : 11 },
      unit: '',
    },
  ];
};

const WINDOW_MS = 2_000;

/** Goals 2 and 3. */
const hotProxy = async (world: World): Promise<readonly Figure[]> => {
  const fleet = world.fleet();
  await fleet.addProxies(1, 200);
  await fleet.showViews();
  const { handler, counts } = fleet.instance();
  const client = inProcess(handler);
  const bare = fleet.db.collection('bare').doc('one');
  await bare.set({ at: 0 });
  const acquiring = () => rateOf(64, WINDOW_MS, () => acquireAndRelease(client));
  const updating = () =>
    rateOf(64, WINDOW_MS, async (worker) => {
      await bare.update({ at: worker });
    });
  await acquiring();
  await updating();
  const ratios: number[] = [];
  const before = { ...counts };
  let acquires = 0;
  for (let round = 0; round < 3; round += 1) {
    const rate = await acquiring();
    acquires += (rate * WINDOW_MS) / 1_000;
    ratios.push(rate / (await updating()));
  }
  const { reads, writes } = difference(counts, before);
  return [
    {
      goal: 2,
      what: 'writes per acquire, 64 at once on one proxy',
      value: writes / acquires,
      target: { atMost: 0.05 },
      unit: '',
    },
    {
      goal: 2,
      what: 'documents read per acquire, 64 at once on one proxy',
      value: reads / acquires,
      target: { atMost: 0.01 },
      unit: '',
    },
    {
      goal: 3,
      what: 'acquires (each released too) per bare update of one document, 64 at once',
      value: median(ratios),
      target: { atLeast: 5 },
      unit: 'x',
    },
  ];
};

/** Goal 4, in this process. */
const latency = async (world: World): Promise<readonly Figure[]> => {
  const fleet = world.fleet();
  await fleet.addProxies(100, 5);
  await fleet.showSettledViews();
  const client = inProcess(fleet.instance().handler);
  const bare = fleet.db.collection('bare').doc('one');
  await bare.set({ at: 0 });
  for (let round = 0; round < 100; round += 1) await acquireAndRelease(client);
  const acquires: number[] = [];
  const updates: number[] = [];
  for (let round = 0; round < 500; round += 1) {
    let leaseId = '';
    acquires.push(await timed(async () => ({ leaseId } = await client.acquire())));
    await client.release(leaseId);
    updates.push(await timed(() => bare.update({ at: round })));
  }
  const value = median(acquires) / median(updates);
  return [
    {
      goal: 4,
      what: 'p50 of an acquire to p50 of a bare update, in process',
      value,
      target: { atMost: 1.2 },
      unit: 'x',
    },
  ];
};

/** Goal 7. */
const refusals = async (world: World): Promise<readonly Figure[]> => {
  const fleet = world.fleet();
  const records = await fleet.addProxies(40, 5);
  await fleet.showViews();
  const instances = [fleet.instance(), fleet.instance()];
  const clients = instances.map(({ handler }) => inProcess(handler));
  const answers = await Promise.all(
    Array.from({ length: 260 }, (_, index) => clients[index % 2]?.acquire() ?? Promise.reject(new Error())),
  );
  const granted = answers.filter(({ status }) => status === 201);
  const [first, second] = clients;
  if (!first || !second) throw new Error('there are two instances');
  let refusedFree = 0;
  for (const { leaseId } of granted.slice(0, 20)) {
    await second.release(leaseId);
    if ((await first.acquire()).status !== 201) refusedFree += 1;
  }
  const rounds = 50;
  const before = instances.map(({ counts }) => ({ ...counts }));
  for (let round = 0; round < rounds; round += 1) await first.acquire();
  const reads = instances
    .map(({ counts }, index) => difference(counts, before[index] ?? noCounts()))
    .reduce((sum, spent) => sum + spent.reads + spent.fleetReads, 0);
  const slots = records.length * 5;
  return [
    {
      goal: 7,
      what: `grants of 260 acquires for ${slots} slots, less the slots`,
      value: Math.abs(granted.length - slots),
      target: { atMost: 0 },
      unit: '',
    },
    {
      goal: 7,
      what: 'refusals of 20 acquires right after another instance freed a slot',
      value: refusedFree,
      target: { atMost: 0 },
      unit: '',
    },
    {
      goal: 7,
      what: 'documents read per refusal, once known full',
      value: reads / rounds,
      target: { atMost: 2 },
      unit: '',
    },
  ];
};

const SIZES = [10, 1_000, 10_000];

/** `BENCH_PARTS=hot,latency` measures these alone. */
const PARTS: Parts<World> = {
  hot: hotProxy,
  latency,
  refusals,
  processes,
  boskos: sideBySide,
  ...Object.fromEntries(SIZES.map((size) => [`size-${size}`, (world: World) => bySize(world, size)])),
};

export const bench: Bench = async (context) => {
  const world = await startWorld();
  try {
    return await measureParts(PARTS, world, context);
  } finally {
    await world.stop();
  }
};
