/**
 * Goal 17: from `kubectl apply` to the first lease, on the whole stack. What the machine needs to boot is not ours, nor is
 * the time until the next try of a poll that has a schedule; the rest is compared with one hop through Pub/Sub and the
 * dispatcher, measured in the same run.
 */

import { createServer } from 'node:http';

import { PubSub } from '@google-cloud/pubsub';

import { makeLog } from '#shared/app/log.ts';
import { pause } from '#shared/app/wait.ts';
import { gcpSpec, startWorld, type World } from '#test/e2e/world.ts';
import { acquire, release } from '#test/stack/crawl.ts';
import { startDispatcher } from '#test/stack/dispatcher.ts';
import { SUBSCRIPTIONS } from '#test/stack/subscriptions.ts';

import type { BenchContext, Figure } from '../figure.ts';

const HOPS = 60;
const PROXIES = 15;
const POLL_MS = 5;

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

/** Milliseconds from a publish to the request at the function, one message at a time. */
const measureHops = async (projectId: string): Promise<readonly number[]> => {
  let arrived: (() => void) | undefined;
  const sink = createServer((message, response) => {
    message.resume();
    message.once('end', () => {
      arrived?.();
      response.writeHead(204).end();
    });
  });
  await new Promise<void>((resolve) => {
    sink.listen(0, '127.0.0.1', () => resolve());
  });
  const address = sink.address();
  const url = `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`;
  const [usual] = SUBSCRIPTIONS;
  if (!usual) throw new Error('there is no subscription to copy');
  const subscription = { ...usual, name: 'hops', topic: 'hops', deadLetterTopic: 'hops-dead' };
  const log = makeLog((line) => process.stderr.write(line));
  const dispatcher = await startDispatcher({
    projectId,
    subscriptions: [subscription],
    urlOf: () => url,
    log,
  });
  const client = new PubSub({ projectId });
  const topic = client.topic('hops', { messageOrdering: true });
  const times: number[] = [];
  for (let hop = 0; hop < HOPS; hop += 1) {
    const begun = performance.now();
    const arrival = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    await topic.publishMessage({ json: { hop }, orderingKey: `hop-${hop}` });
    await arrival;
    times.push(performance.now() - begun);
    await pause(20);
  }
  await dispatcher.stop();
  await client.close();
  await new Promise((resolve) => {
    sink.close(resolve);
    sink.closeAllConnections();
  });
  // The first ones open connections.
  return times.slice(10);
};

interface Timeline {
  readonly total: number;
  /** Until the create call arrives at the provider. */
  readonly untilInsert: number;
  /** From the create call until the machine listens. */
  readonly boot: number;
  /** From then until the first probe. */
  readonly untilProbed: number;
  /** From the first probe until there is a lease. */
  readonly untilLeased: number;
}

const every = async (done: () => Promise<boolean> | boolean, what: string): Promise<number> => {
  const deadline = performance.now() + 60_000;
  while (!(await done())) {
    if (performance.now() > deadline) throw new Error(`not within 60 s: ${what}`);
    await pause(POLL_MS);
  }
  return performance.now();
};

const watchOne = async (world: World, name: string): Promise<Timeline> => {
  const { control } = world.stack.cloud.compute;
  control.resetCalls();
  const wall = Date.now();
  const begun = performance.now();
  await world.apply(name, gcpSpec());
  const key = (await world.get(name))?.metadata.uid;
  const machine = () => control.instances().find(({ labels }) => labels['egress-proxy-uid'] === key);
  const listening = every(() => machine()?.listening ?? false, `${name} listens`);
  const probed = every(() => (machine()?.requests ?? 0) > 0, `${name} is probed`);
  // Asked for only from then on: thousands of refusals would take the time that is measured.
  const leased = probed.then(() =>
    every(async () => {
      const body = { holder: 'bench', ttlSeconds: 30, proxy: { namespace: world.namespace, name } };
      const lease = await acquire(world.discoveryUrl, body).catch(() => undefined);
      if (lease) await release(world.discoveryUrl, lease);
      return lease !== undefined;
    }, `${name} is leased`),
  );
  const [l, p, end] = await Promise.all([listening, probed, leased]);
  const [insert] = control.calls({ method: 'instances.insert' });
  const untilInsert = (insert?.at ?? wall) - wall;
  return {
    total: end - begun,
    untilInsert,
    boot: l - begun - untilInsert,
    untilProbed: p - l,
    untilLeased: end - p,
  };
};

export const measureEndToEnd = async ({ say }: BenchContext): Promise<readonly Figure[]> => {
  const world = await startWorld('hops');
  try {
    const hops = await measureHops(world.stack.env['GOOGLE_CLOUD_PROJECT'] ?? '');
    await watchOne(world, 'warm-1');
    await watchOne(world, 'warm-2');
    const lines: Timeline[] = [];
    for (let index = 0; index < PROXIES; index += 1) lines.push(await watchOne(world, `px-${index}`));
    const hop = median(hops);
    const of = (pick: (line: Timeline) => number): number => median(lines.map(pick));
    const own = of(({ total, boot, untilProbed }) => total - boot - untilProbed);
    say(
      `hop ${hop.toFixed(1)} ms; apply to create call ${of((line) => line.untilInsert).toFixed(0)}, boot ${of((line) => line.boot).toFixed(0)}, next probe ${of((line) => line.untilProbed).toFixed(0)}, probe to lease ${of((line) => line.untilLeased).toFixed(0)} ms`,
    );
    return [
      {
        goal: 17,
        what: 'own time from apply to lease, in hops through Pub/Sub',
        value: own / hop,
        target: { atMost: 3 },
        unit: 'hops',
      },
      {
        goal: 0,
        what: 'one hop through Pub/Sub and the dispatcher, median',
        value: hop,
        target: { atMost: 1_000 },
        unit: 'ms',
      },
      {
        goal: 0,
        what: 'own time from apply to lease, median',
        value: own,
        target: { atMost: 10_000 },
        unit: 'ms',
      },
    ];
  } finally {
    await world.stack.stop();
  }
};
