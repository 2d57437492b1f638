/** Discovery beside Boskos: the same slots, the same number of clients, each over HTTP, in turns. */

import { pause } from '#shared/app/wait.ts';
import { buildAll } from '#test/tools/build.ts';

import type { BenchContext, Figure } from '../figure.ts';
import { ensureBoskos, startBoskos } from './boskos.ts';
import { median, overHttp, rateOf, type Client } from './calls.ts';
import { startInstance } from './processes.ts';
import type { World } from './world.ts';

const WINDOW_MS = 3_000;
const PROXIES = 100;
const SLOTS = 5;
const CLIENTS = 64;
/** How long a client keeps a lease. */
const USED_MS = 1;

interface Taken {
  readonly leaseId: string;
  /** Refusals before it. */
  readonly refusals: number;
}

/** Asks until it gets one: there is always one free. */
const take = async (client: Client): Promise<Taken> => {
  for (let refusals = 0; ; refusals += 1) {
    const { status, leaseId } = await client.acquire();
    if (status === 201) return { leaseId, refusals };
    if (refusals > 1_000) throw new Error(`acquire goes on answering ${status}`);
  }
};

interface Side {
  readonly client: Client;
  /** What a lease takes a slot of, and how many slots that has. */
  readonly placeOf: (leaseId: string) => string;
  readonly slots: number;
}

interface Measured {
  readonly rate: number;
  /** Per lease. */
  readonly refusals: number;
  /** Leases of a slot that another client held. */
  readonly overAllocations: number;
  /** Leases that could not be given back, since they were somebody else's or nobody's by then. */
  readonly lost: number;
}

const measure = async ({ client, placeOf, slots }: Side): Promise<Measured> => {
  const held = new Map<string, number>();
  const add = (place: string, by: number): number => {
    const count = (held.get(place) ?? 0) + by;
    held.set(place, count);
    return count;
  };
  let [taken, refusals, overAllocations, lost] = [0, 0, 0, 0];
  const rate = await rateOf(CLIENTS, WINDOW_MS, async () => {
    const lease = await take(client);
    const place = placeOf(lease.leaseId);
    taken += 1;
    refusals += lease.refusals;
    if (add(place, 1) > slots) overAllocations += 1;
    await pause(USED_MS);
    add(place, -1);
    if ((await client.release(lease.leaseId)) !== 204) lost += 1;
  });
  return { rate, refusals: refusals / taken, overAllocations, lost };
};

const compare = async (ours: Side, theirs: Side, say: (line: string) => void) => {
  await measure(ours);
  await measure(theirs);
  const rounds: { readonly ours: Measured; readonly theirs: Measured }[] = [];
  for (let round = 0; round < 3; round += 1) {
    rounds.push({ ours: await measure(ours), theirs: await measure(theirs) });
  }
  for (const { ours: a, theirs: b } of rounds) {
    say(`  leases per second: discovery ${a.rate.toFixed(0)}, Boskos ${b.rate.toFixed(0)}`);
  }
  const total = (side: 'ours' | 'theirs', key: 'overAllocations' | 'lost'): number =>
    rounds.reduce((sum, round) => sum + round[side][key], 0);
  return {
    rate: median(rounds.map(({ ours: a, theirs: b }) => a.rate / b.rate)),
    ourRefusals: median(rounds.map(({ ours: { refusals } }) => refusals)),
    theirRefusals: median(rounds.map(({ theirs: { refusals } }) => refusals)),
    ourOverAllocations: total('ours', 'overAllocations'),
    theirOverAllocations: total('theirs', 'overAllocations'),
    ourLost: total('ours', 'lost'),
    theirLost: total('theirs', 'lost'),
  };
};

const beside = `Boskos in memory, ${PROXIES * SLOTS} slots`;

const one = (what: string, value: number, target: Figure['target'], unit = ''): Figure => ({
  goal: 0,
  what,
  value,
  target,
  unit,
});

const figuresOf = (found: Awaited<ReturnType<typeof compare>>): readonly Figure[] => [
  one(
    `leases taken and given back per second over HTTP, ${CLIENTS} clients, to ${beside}`,
    found.rate,
    { atLeast: 1 },
    'x',
  ),
  one('refusals per lease although slots are free', found.ourRefusals, { atMost: 0 }),
  one('refusals per lease although slots are free, Boskos', found.theirRefusals, { atLeast: 0 }),
  one('slots that two clients held', found.ourOverAllocations, { atMost: 0 }),
  one('slots that two clients held, Boskos', found.theirOverAllocations, { atLeast: 0 }),
  one('leases that could not be given back', found.ourLost, { atMost: 0 }),
  one('leases that could not be given back, Boskos', found.theirLost, { atLeast: 0 }),
];

export const sideBySide = async (world: World, { say }: BenchContext): Promise<readonly Figure[]> => {
  const program = await ensureBoskos(world.runDir, say);
  await buildAll();
  const fleet = world.fleet();
  await fleet.addProxies(PROXIES, SLOTS);
  await fleet.showSettledViews();
  const boskos = await startBoskos(program, world.runDir, PROXIES * SLOTS);
  try {
    const instance = await startInstance(world, fleet, 'beside');
    const client = overHttp(instance.url);
    try {
      const ours = { client, placeOf: (id: string) => id.split('.')[0] ?? '', slots: SLOTS };
      const theirs = { client: boskos.client, placeOf: (name: string) => name, slots: 1 };
      return figuresOf(await compare(ours, theirs, say));
    } finally {
      client.close();
      await instance.stop();
    }
  } finally {
    await boskos.stop();
  }
};
