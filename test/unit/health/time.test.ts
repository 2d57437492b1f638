import { afterEach, describe, expect, it, vi } from 'vitest';

import { systemClock } from '#shared/app/clock.ts';
import { hasCode } from '#shared/app/errors.ts';
import { systemIds } from '#shared/app/ids.ts';
import { makeLog } from '#shared/app/log.ts';
import { noMetrics } from '#shared/app/metrics.ts';

import { startAfter } from '../../../functions/health/decide.ts';
import { makeHandler } from '../../../functions/health/handler.ts';
import type { Parts } from '../../../functions/health/parts.ts';
import { parseTarget } from '../../../functions/health/probe/target.ts';
import { ALERTS, METRICS } from '../../../functions/health/signals.ts';

afterEach(() => {
  vi.useRealTimers();
});

const target = parseTarget('https://echo.example/', 'echo');
if (!target) throw new TypeError('no target');
const never = (): Promise<never> => new Promise(() => undefined);

const start = (over: Partial<Parts>) => {
  const lines: string[] = [];
  const counts: string[] = [];
  const handler = makeHandler({
    installation: 'test',
    records: { read: never, write: never, probed: never },
    rounds: { claim: never },
    views: { write: never },
    credentials: { read: never },
    publisher: { change: never },
    prober: { probe: () => Promise.resolve({ outcome: 'Ok' }) },
    targets: [target],
    shards: 1,
    probesAtOnce: 64,
    clock: systemClock,
    ids: systemIds,
    log: makeLog((line) => lines.push(line)),
    metrics: {
      ...noMetrics,
      count: (name, labels = {}) => counts.push(`${name} ${Object.values(labels).join()}`),
    },
    ...over,
  });
  const round = () =>
    handler({
      method: 'POST',
      path: '/',
      query: new URLSearchParams(),
      headers: {},
      body: new Uint8Array(),
    });
  return { round, lines, counts };
};

const claimed = () =>
  Promise.resolve({
    now: 1,
    state: { flips: [], flipsId: '', massFailures: 0, doubts: [] },
    save: () => Promise.resolve(),
  });

describe('a round (rows 24, 25)', () => {
  it.each<[string, Partial<Parts>]>([
    ['the claim', {}],
    ['the reading of records', { rounds: { claim: claimed } }],
    ['the control probe', { rounds: { claim: claimed }, prober: { probe: never } }],
  ])('ends within 55 s when %s hangs, says so, and the next one may begin', async (_, over) => {
    vi.useFakeTimers();
    const { round, lines, counts } = start(over);
    for (const number of [1, 2]) {
      const ended = round().catch((error: unknown) => error);
      await vi.advanceTimersByTimeAsync(55_000);
      expect(hasCode(await ended, 'Transient')).toBe(true);
      expect(lines.filter((line) => line.includes('"alert":"RoundCutOff"'))).toHaveLength(number);
    }
    expect(counts).toStrictEqual(['health_alerts RoundCutOff', 'health_alerts RoundCutOff']);
  });
});

describe('starts of probes (row 72)', () => {
  it('are spread evenly with jitter, over at most 25 s', () => {
    expect([0, 1, 199].map((index) => startAfter(index, 200, 1, 0.5))).toStrictEqual([2, 6, 798]);
    expect(startAfter(9999, 10_000, 1, 0.99)).toBeLessThanOrEqual(28_000);
    expect(startAfter(99_999, 100_000, 4, 0.99)).toBeLessThanOrEqual(28_000);
    expect(startAfter(0, 1, 1, 0.5)).toBeLessThan(10);
  });
});

it('alerts and counters have names of their own', () => {
  expect(new Set(ALERTS).size).toBe(ALERTS.length);
  expect(new Set(Object.values(METRICS)).size).toBe(Object.keys(METRICS).length);
});
