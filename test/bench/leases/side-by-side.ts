/** Discovery beside Boskos: the same slots, the same number of clients, each over HTTP, in turns. */

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

interface Measured {
  readonly rate: number;
  readonly refusals: number;
}

const measure = async (client: Client): Promise<Measured> => {
  let [taken, refusals] = [0, 0];
  const rate = await rateOf(CLIENTS, WINDOW_MS, async () => {
    const lease = await take(client);
    taken += 1;
    refusals += lease.refusals;
    const released = await client.release(lease.leaseId);
    if (released !== 204) throw new Error(`release answered ${released}`);
  });
  return { rate, refusals: refusals / taken };
};

const compare = async (ours: Client, theirs: Client, say: (line: string) => void) => {
  await measure(ours);
  await measure(theirs);
  const rounds: { readonly ours: Measured; readonly theirs: Measured }[] = [];
  for (let round = 0; round < 3; round += 1) {
    rounds.push({ ours: await measure(ours), theirs: await measure(theirs) });
  }
  for (const { ours: a, theirs: b } of rounds) {
    say(`  leases per second: discovery ${a.rate.toFixed(0)}, Boskos ${b.rate.toFixed(0)}`);
  }
  return {
    rate: median(rounds.map(({ ours: a, theirs: b }) => a.rate / b.rate)),
    ourRefusals: median(rounds.map(({ ours: { refusals } }) => refusals)),
    theirRefusals: median(rounds.map(({ theirs: { refusals } }) => refusals)),
  };
};

const beside = `Boskos in memory, ${PROXIES * SLOTS} slots`;

const figuresOf = (found: Awaited<ReturnType<typeof compare>>): readonly Figure[] => [
  {
    goal: 0,
    what: `leases taken and given back per second over HTTP, ${CLIENTS} clients, to ${beside}`,
    value: found.rate,
    target: { atLeast: 1 },
    unit: 'x',
  },
  {
    goal: 0,
    what: `refusals per lease although slots are free, ${CLIENTS} clients`,
    value: found.ourRefusals,
    target: { atMost: 0 },
    unit: '',
  },
  {
    goal: 0,
    what: 'the same of Boskos',
    value: found.theirRefusals,
    target: { atLeast: 0 },
    unit: '',
  },
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
      return figuresOf(await compare(client, boskos.client, say));
    } finally {
      client.close();
      await instance.stop();
    }
  } finally {
    await boskos.stop();
  }
};
