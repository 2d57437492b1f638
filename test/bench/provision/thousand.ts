/** Goal 15: 1,000 creations through one instance, operations of 20 to 60 s, pushed by the dispatcher through a front that counts. */

import { makeLog } from '#shared/app/log.ts';
import { pause } from '#shared/app/wait.ts';
import { seeded } from '#test/chaos/random.ts';
import { startDispatcher } from '#test/stack/dispatcher.ts';
import { SUBSCRIPTIONS, type PushSubscription } from '#test/stack/subscriptions.ts';

import type { BenchContext, Figure } from '../figure.ts';
import { startFront } from './front.ts';
import { changeOf, gcp, PROJECT, type ProvisionWorld } from './world.ts';
import { listsPerSecond } from './waiting.ts';

/** Cloud Run's setting for this function. */
const CONCURRENCY = 80;
const MINUTE = 60_000;

/** The usual subscription, of a topic of our own. What waits at the front is not late. */
const redirected = (usual: PushSubscription): PushSubscription => ({
  ...usual,
  topic: 'thousand',
  deadLetterTopic: 'thousand-dead',
  ackDeadlineSeconds: 3_600,
});

/** The most calls within any minute. */
const perMinute = (times: readonly number[]): number => {
  let most = 0;
  let from = 0;
  const sorted = times.toSorted((a, b) => a - b);
  for (const [index, at] of sorted.entries()) {
    while (at - (sorted[from] ?? at) > MINUTE) from += 1;
    most = Math.max(most, index - from + 1);
  }
  return most;
};

export const measureThousand = async (
  world: ProvisionWorld,
  { seed, say }: BenchContext,
): Promise<readonly Figure[]> => {
  const count = Number(process.env['BENCH_CREATIONS'] ?? 1_000);
  const random = seeded(seed);
  const { control } = world.compute;
  const front = await startFront(world.provision.url, CONCURRENCY);
  const dispatcher = await startDispatcher({
    projectId: PROJECT,
    subscriptions: SUBSCRIPTIONS.filter(({ target }) => target.function === 'provision').map(redirected),
    urlOf: () => front.url,
    log: makeLog((line) => process.stderr.write(line)),
  });
  try {
    for (let index = 0; index < count; index += 1)
      control.addFault({
        kind: 'slowOperation',
        method: 'instances.insert',
        ms: 20_000 + random.int(40_000),
        count: 1,
      });
    control.resetCalls();
    const begun = performance.now();
    const topic = world.pubsub.topic('thousand', { messageOrdering: true });
    const uids: string[] = [];
    for (let index = 0; index < count; index += 1) {
      const name = `many-${index}`;
      const uid = await world.create(name, gcp());
      uids.push(uid);
      await topic.publishMessage({ json: changeOf(name, uid, 'Created'), orderingKey: uid });
    }
    const answered = (): number => [...front.answers.values()].reduce((sum, each) => sum + each, 0);
    for (let said = 0; answered() < count && performance.now() - begun < 30 * MINUTE; said += 1) {
      await pause(1_000);
      if (said % 60 === 59) say(`${answered()} of ${count} are answered`);
    }
    const minutes = (performance.now() - begun) / MINUTE;
    const calls = control.calls();
    const of = (method: string): number => calls.filter((call) => call.method === method).length;
    const refused = [...front.answers].filter(([status]) => status < 200 || status >= 300);
    const published = await Promise.all(
      uids.map(async (uid) => (await world.record(uid))?.serving !== undefined),
    );
    say(
      `${count} creations in ${minutes.toFixed(1)} min; ${JSON.stringify(Object.fromEntries(front.answers))}`,
    );
    return [
      {
        goal: 15,
        what: 'creations that have an endpoint',
        value: published.filter(Boolean).length,
        target: { atLeast: count },
        unit: '',
      },
      {
        goal: 15,
        what: 'calls to Compute Engine in the busiest minute',
        value: perMinute(calls.map(({ at }) => at)),
        target: { atMost: 1_500 },
        unit: 'calls',
      },
      {
        goal: 15,
        what: 'instances.insert per creation, of many',
        value: of('instances.insert') / count,
        target: { atMost: 1 },
        unit: 'calls',
      },
      {
        goal: 15,
        what: 'instances.get per creation, of many',
        value: of('instances.get') / count,
        target: { atMost: 1 },
        unit: 'calls',
      },
      {
        goal: 15,
        what: 'operations.get per creation, of many',
        value: of('operations.get') / count,
        target: { atMost: 0 },
        unit: 'calls',
      },
      {
        goal: 15,
        what: 'operation lists per zone within any second, of many',
        value: listsPerSecond(calls.filter(({ method }) => method === 'operations.list')),
        target: { atMost: 1 },
        unit: 'calls',
      },
      {
        goal: 15,
        what: 'pushes refused, of many',
        value: refused.reduce((sum, [, each]) => sum + each, 0),
        target: { atMost: 0 },
        unit: '',
      },
    ];
  } finally {
    control.clearFaults();
    await dispatcher.stop();
    await front.stop();
  }
};
