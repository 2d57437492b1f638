/** Goals 4 and 5: instances as real processes, the bundles that are deployed, over HTTP. */

import { readFile } from 'node:fs/promises';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

import { deploy, type Deployment } from '#test/stack/deployments.ts';
import { buildAll } from '#test/tools/build.ts';

import type { BenchContext, Figure } from '../figure.ts';
import { acquireAndRelease, median, overHttp, rateOf, timed, type Client } from './calls.ts';
import { INSTALLATION, type Fleet, type World } from './world.ts';

const WINDOW_MS = 4_000;
/** By then instances have found out which proxies others use: that takes acquires, not time. */
const WARM = { acquires: 3_000, ms: 20_000 };

/** One instance as it is deployed; its bundle has to be built. */
export const startInstance = async (world: World, fleet: Fleet, name: string): Promise<Deployment> => {
  const runDir = join(world.runDir, name);
  mkdirSync(runDir, { recursive: true });
  return deploy({
    name: 'discovery',
    runDir,
    log: () => undefined,
    env: {
      GOOGLE_CLOUD_PROJECT: fleet.projectId,
      INSTALLATION_ID: INSTALLATION,
      PROXY_NAMESPACES: '*',
      FIRESTORE_EMULATOR_HOST: world.emulator.host,
      // Nothing is published by these calls.
      PUBSUB_EMULATOR_HOST: '127.0.0.1:9',
      METADATA_SERVER_DETECTION: 'none',
    },
  });
};

const conflicts = async (deployments: readonly Deployment[]): Promise<number> => {
  const logs = await Promise.all(deployments.map(({ logFile }) => readFile(logFile, 'utf8')));
  return logs.reduce((sum, log) => sum + log.split('"lease_commit_conflict"').length - 1, 0);
};

const clientAt = <C>(clients: readonly C[], index: number): C => {
  const client = clients[index % clients.length];
  if (!client) throw new Error('there are clients');
  return client;
};

interface Run {
  readonly rate: number;
  readonly retries: number;
}

const warmUp = async (work: (worker: number) => Promise<void>): Promise<void> => {
  const until = performance.now() + WARM.ms;
  let acquires = 0;
  while (acquires < WARM.acquires && performance.now() < until) {
    acquires += await rateOf(64, 1_000, work);
  }
};

/** `back` says through which client a worker's lease is released. */
const run = async (
  deployments: readonly Deployment[],
  clients: readonly Client[],
  back: (worker: number) => Client,
): Promise<Run> => {
  const work = (worker: number) => acquireAndRelease(clientAt(clients, worker), back(worker));
  await warmUp(work);
  const before = await conflicts(deployments);
  const rate = await rateOf(64, WINDOW_MS, work);
  const retries = ((await conflicts(deployments)) - before) / ((rate * WINDOW_MS) / 1_000);
  return { rate, retries };
};

const p50 = async (fleet: Fleet, client: Client): Promise<number> => {
  const bare = fleet.db.collection('bare').doc('one');
  await bare.set({ at: 0 });
  const acquires: number[] = [];
  const updates: number[] = [];
  for (let round = 0; round < 400; round += 1) {
    let leaseId = '';
    acquires.push(await timed(async () => ({ leaseId } = await client.acquire())));
    await client.release(leaseId);
    updates.push(await timed(() => bare.update({ at: round })));
  }
  return median(acquires) / median(updates);
};

const measure = async (
  fleet: Fleet,
  deployments: readonly Deployment[],
  { say }: BenchContext,
): Promise<readonly Figure[]> => {
  const clients = deployments.map(({ url }) => overHttp(url));
  const [one] = clients;
  if (!one) throw new Error('there are clients');
  try {
    const alone = await run(deployments, [one], () => one);
    const latency = await p50(fleet, one);
    const together = await run(deployments, clients, (worker) => clientAt(clients, worker));
    const elsewhere = await run(deployments, clients, (worker) => clientAt(clients, worker + 1));
    const rates = [alone, together, elsewhere].map(({ rate }) => rate.toFixed(0));
    say(`  acquires per second: ${rates.join(', ')} (one instance; four; four, released elsewhere)`);
    return [
      {
        goal: 4,
        what: 'p50 of an acquire over HTTP to p50 of a bare update',
        value: latency,
        target: { atMost: 1.5 },
        unit: 'x',
      },
      {
        goal: 5,
        what: 'rate of 4 instances to the rate of one, 64 workers',
        value: together.rate / alone.rate,
        target: { atLeast: 0.9 },
        unit: 'x',
      },
      {
        goal: 5,
        what: 'retries per acquire, released where granted',
        value: together.retries,
        target: { atMost: 0.01 },
        unit: '',
      },
      {
        goal: 5,
        what: 'retries per acquire, released through another instance',
        value: elsewhere.retries,
        target: { atMost: 0.6 },
        unit: '',
      },
    ];
  } finally {
    for (const client of clients) client.close();
  }
};

export const processes = async (world: World, context: BenchContext): Promise<readonly Figure[]> => {
  await buildAll();
  const fleet = world.fleet();
  await fleet.addProxies(100, 5);
  await fleet.showSettledViews();
  const deployments: Deployment[] = [];
  try {
    for (const name of ['a', 'b', 'c', 'd']) deployments.push(await startInstance(world, fleet, name));
    return await measure(fleet, deployments, context);
  } finally {
    await Promise.allSettled(deployments.map((deployment) => deployment.stop()));
  }
};
