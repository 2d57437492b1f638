import { describe, expect, test, vi } from 'vitest';

import { systemClock } from '#shared/app/clock.ts';
import { systemIds } from '#shared/app/ids.ts';
import { instrument } from '#shared/app/instrumentation.ts';
import { noMetrics } from '#shared/app/metrics.ts';
import { parseTraceparent } from '#shared/app/trace-context.ts';

import { EFFECT_WITHIN_MS, type ProxyView } from '../../../functions/watcher/decide.ts';
import { makeKnown } from '../../../functions/watcher/known.ts';
import { makeNudger } from '../../../functions/watcher/nudger.ts';
import {
  INSTALLATION,
  aNewView,
  aView,
  fakeTopic,
  middlingIds,
  silentLog,
  steppedClock,
  uidOf,
} from './builders.ts';

const setUp = (change: { readonly publishWithinMs?: number } = {}) => {
  const traces: string[] = [];
  const { tracing } = instrument({
    name: 'watcher',
    projectId: 'p',
    clock: systemClock,
    ids: systemIds,
    write: () => undefined,
  });
  const known = makeKnown();
  const topic = fakeTopic();
  const clock = steppedClock();
  const failures: { uid: string; count: number }[] = [];
  const nudger = makeNudger({
    known,
    installation: INSTALLATION,
    publish: (message) => {
      traces.push(parseTraceparent(tracing.traceparent())?.traceId ?? 'none');
      return topic.change(message);
    },
    tracing,
    onFailure: ({ uid }, count) => failures.push({ uid, count }),
    onUnanswered: () => undefined,
    clock,
    ids: middlingIds,
    log: silentLog,
    metrics: noMetrics,
    ...change,
  });
  const see = (view: ProxyView): void => {
    known.seen(view);
    nudger.evaluate(view.ref.uid);
  };
  const lose = (view: ProxyView): void => {
    known.vanished(view);
    nudger.evaluate(view.ref.uid);
  };
  return { known, topic, traces, clock, failures, nudger, see, lose };
};

const reasons = (topic: ReturnType<typeof fakeTopic>): readonly string[] =>
  topic.published.map(({ reason }) => reason);

/** Lets everything run that needs no time. */
const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 50; turn += 1) await Promise.resolve();
};

describe('the nudger', () => {
  test('W6: publishes once for a new Proxy, whatever is replayed or written by us after it', async () => {
    const { topic, see, nudger } = setUp();
    see(aNewView());
    await settled();
    for (let replay = 0; replay < 10; replay += 1) see(aNewView());
    see(aNewView(1, { finalizers: aView().finalizers }));
    await settled();
    see(aView());
    await settled();
    expect(reasons(topic)).toEqual(['New']);
    expect(nudger.pending).toBe(0);
  });

  test('repeats a nudge whose effect does not show within two minutes, and stops when it does', async () => {
    const { topic, clock, see, nudger } = setUp();
    see(aView(1, { generation: 2 }));
    await settled();
    clock.step(EFFECT_WITHIN_MS - 1);
    nudger.evaluate(uidOf(1));
    await settled();
    expect(topic.published).toHaveLength(1);
    clock.step(1);
    nudger.evaluate(uidOf(1));
    await settled();
    expect(topic.published).toHaveLength(2);
    see(aView(1, { generation: 2, observed: { generation: 2, labelsHash: 'aa' } }));
    clock.step(EFFECT_WITHIN_MS);
    nudger.evaluate(uidOf(1));
    await settled();
    expect(topic.published).toHaveLength(2);
  });

  test('opens a trace for each change, and repeats a nudge in the trace that it began', async () => {
    const { traces, clock, see, nudger } = setUp();
    see(aView(1, { generation: 2 }));
    await settled();
    clock.step(EFFECT_WITHIN_MS);
    nudger.evaluate(uidOf(1));
    await settled();
    see(aView(1, { generation: 3 }));
    await settled();
    expect(traces).toHaveLength(3);
    expect(traces[1]).toBe(traces[0]);
    expect(new Set(traces).size).toBe(2);
    expect(traces).not.toContain('none');
  });

  test('row 13: a key that fails is tried again with what is current then, and holds no other key up', async () => {
    const { topic, clock, failures, see, nudger } = setUp();
    topic.failing.add(uidOf(1));
    see(aView(1, { generation: 2 }));
    see(aView(2, { generation: 2 }));
    await settled();
    expect(topic.published.map(({ uid }) => uid)).toEqual([uidOf(2)]);
    expect(failures).toEqual([{ uid: uidOf(1), count: 1 }]);
    see(aView(1, { generation: 2, deleting: true }));
    await settled();
    expect(topic.attempts()).toBe(2);
    topic.failing.clear();
    clock.step(60_000);
    nudger.evaluate(uidOf(1));
    await settled();
    expect(topic.published.map(({ uid, reason }) => [uid, reason])).toEqual([
      [uidOf(2), 'SpecChanged'],
      [uidOf(1), 'Deleting'],
    ]);
  });

  test('row 13: a publish that never ends has failed, and neither holds up others nor the stop', async () => {
    const { topic, failures, see, nudger } = setUp({ publishWithinMs: 20 });
    const release = topic.hold();
    for (let n = 1; n <= 100; n += 1) see(aView(n, { generation: 2 }));
    await vi.waitFor(() => expect(topic.attempts()).toBe(100), { timeout: 5000, interval: 5 });
    await nudger.stop();
    expect(new Set(failures.map(({ uid }) => uid)).size).toBe(100);
    release();
  });

  test('is not held up by a wall clock that was set back', async () => {
    const { topic, clock, see, nudger } = setUp();
    see(aView(1, { generation: 2 }));
    await settled();
    clock.setBack(3_600_000);
    clock.step(EFFECT_WITHIN_MS);
    nudger.evaluate(uidOf(1));
    await settled();
    expect(topic.published).toHaveLength(2);
  });

  test('waits longer after each failure, and forgets them after a success', async () => {
    const { topic, clock, failures, see, nudger } = setUp();
    topic.failing.add(uidOf(1));
    see(aView(1, { generation: 2 }));
    await settled();
    const gaps: number[] = [];
    for (let failure = 1; failure < 5; failure += 1) {
      let waited = 0;
      while (failures.length === failure) {
        clock.step(100);
        waited += 100;
        nudger.evaluate(uidOf(1));
        await settled();
      }
      gaps.push(waited);
    }
    expect(gaps).toEqual(gaps.toSorted((a, b) => a - b));
    expect(new Set(gaps).size).toBeGreaterThan(2);
    topic.failing.clear();
    clock.step(60_000);
    nudger.evaluate(uidOf(1));
    await settled();
    topic.failing.add(uidOf(1));
    see(aView(1, { generation: 3 }));
    await settled();
    expect(failures.at(-1)?.count).toBe(1);
  });

  test('publishes a change that came during a publish after it, and not at the same time', async () => {
    const { topic, see } = setUp();
    const release = topic.hold();
    see(aView(1, { generation: 2 }));
    await settled();
    see(aView(1, { generation: 3 }));
    see(aView(1, { generation: 4 }));
    await settled();
    expect(topic.attempts()).toBe(1);
    release();
    await vi.waitUntil(() => topic.published.length === 2);
    await settled();
    expect(topic.attempts()).toBe(2);
  });

  test('row 8: remembers nothing of Proxies that are gone', async () => {
    const { known, topic, see, lose, nudger } = setUp();
    for (let n = 1; n <= 200; n += 1) {
      see(aNewView(n, { secrets: [`s-${n}`] }));
      await settled();
      if (n % 2 === 0) {
        see(aNewView(n, { secrets: [`s-${n}`], deleting: true, generation: 2 }));
        await settled();
      }
      lose(aNewView(n));
      await settled();
    }
    expect(known.size).toBe(0);
    expect(known.secrets.size).toBe(0);
    expect(nudger.pending).toBe(0);
    expect(reasons(topic).filter((reason) => reason === 'Gone')).toHaveLength(100);
  });

  test('row 5: a Proxy that went while publishing failed is forwarded as gone when it works again', async () => {
    const { known, topic, clock, see, lose, nudger } = setUp();
    topic.failing.add(uidOf(1));
    see(aView(1, { generation: 2, deleting: true }));
    await settled();
    lose(aView());
    await settled();
    topic.failing.clear();
    clock.step(60_000);
    nudger.evaluate(uidOf(1));
    await settled();
    expect(reasons(topic)).toEqual(['Gone']);
    expect(known.size).toBe(0);
  });

  test('starts nothing after it was stopped, and lets what runs end', async () => {
    const { topic, see, nudger } = setUp();
    const release = topic.hold();
    see(aView(1, { generation: 2 }));
    await settled();
    const stopped = nudger.stop();
    see(aView(2, { generation: 2 }));
    release();
    await stopped;
    expect(topic.published.map(({ uid }) => uid)).toEqual([uidOf(1)]);
  });
});
