import { expect, test, vi } from 'vitest';

import { noMetrics } from '#shared/app/metrics.ts';
import type { ProxyEvent } from '#shared/kubernetes/cluster.ts';

import { EFFECT_WITHIN_MS } from '../../../functions/watcher/decide.ts';
import { makeKnown } from '../../../functions/watcher/known.ts';
import { makeNudger } from '../../../functions/watcher/nudger.ts';
import { makeUnansweredWarnings } from '../../../functions/watcher/warnings.ts';
import { INSTALLATION, aView, fakeTopic, middlingIds, silentLog, steppedClock, uidOf } from './builders.ts';

test('row 55: a deletion that nobody deals with gets an Event that says what to look at, and no second one soon', async () => {
  const events: ProxyEvent[] = [];
  const [known, topic, clock] = [makeKnown(), fakeTopic(), steppedClock()];
  const cluster = { recordEvent: async (_: unknown, event: ProxyEvent) => void events.push(event) };
  const nudger = makeNudger({
    known,
    installation: INSTALLATION,
    publish: (message) => topic.change(message),
    onFailure: () => undefined,
    onUnanswered: makeUnansweredWarnings(cluster, INSTALLATION, clock),
    clock,
    ids: middlingIds,
    log: silentLog,
    metrics: noMetrics,
  });
  known.seen(aView(1, { deleting: true, generation: 2 }));
  const shown: number[] = [];
  for (let nudge = 1; nudge <= 7; nudge += 1) {
    nudger.evaluate(uidOf(1));
    await vi.waitFor(() => expect(topic.published).toHaveLength(nudge));
    await nudgerAtRest();
    shown.push(events.length);
    clock.step(EFFECT_WITHIN_MS);
  }
  expect(shown).toEqual([0, 0, 0, 0, 0, 1, 1]);
  expect(events[0]).toMatchObject({ type: 'Warning', reason: 'NotDealtWith' });
  expect(events[0]?.message).toContain(`functions of installation ${INSTALLATION} run`);
});

/** Lets everything run that needs no time. */
const nudgerAtRest = async (): Promise<void> => {
  for (let turn = 0; turn < 50; turn += 1) await Promise.resolve();
};
