import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { DEFAULT_HEALTH_CHECK } from '#shared/domain/proxy.ts';
import type { ProxyRecord, Publication } from '#shared/domain/record.ts';
import { addResult, applyStreaks, startStreak } from '#shared/domain/verdict-rules.ts';
import type { VerdictState } from '#shared/domain/verdict.ts';

import {
  MASS_ROUNDS,
  conclude,
  findingOf,
  nextTryAfter,
  planRound,
} from '../../../functions/health/decide.ts';

const NOW = 1_800_000_000_000;
const MINUTE = 60_000;

const published = (id: string, state: VerdictState = 'Healthy'): Publication => ({
  endpoint: { id, host: '192.0.2.1', port: 3128, scheme: 'http', instanceId: '', credentialsVersion: '' },
  verdict: { state, since: 1, checkedAt: 1 },
  publishedAt: 1,
});

const recordOf = (index: number, over: Partial<ProxyRecord> = {}): ProxyRecord => ({
  ref: {
    namespace: 'crawlers',
    name: `p${index}`,
    uid: `${(index * 2_654_435_761).toString(16).slice(-8).padStart(8, '0')}-0000-4000-8000-000000000000`,
  },
  installation: 'test',
  provider: 'gcp',
  generation: 1,
  labels: {},
  maxLeases: 1,
  cordoned: false,
  deleting: false,
  drainTimeoutSeconds: 300,
  healthCheck: DEFAULT_HEALTH_CHECK,
  serving: published(`e${index}`),
  draining: [],
  machines: [],
  incarnation: 0,
  gone: false,
  ...over,
});

const idsOf = (tasks: ReturnType<typeof planRound>): readonly string[] =>
  tasks.map(({ publication }) => publication.endpoint.id).sort();

const doubt = (at: number) =>
  addResult(startStreak('e1'), { endpointId: 'e1', at, outcome: 'ConnectRefused' });

describe('what a round probes', () => {
  it('every published endpoint, whatever part it plays, suspects apart (idea 4)', () => {
    const record = recordOf(1, {
      candidate: published('candidate', 'Unknown'),
      draining: [{ ...published('draining', 'Unhealthy'), until: NOW }],
    });
    const tasks = planRound([record], { now: NOW, previousAt: NOW - MINUTE }, []);
    expect(Object.fromEntries(tasks.map((task) => [task.publication.endpoint.id, task.pool]))).toStrictEqual({
      e1: 'live',
      candidate: 'suspect',
      draining: 'suspect',
    });
  });

  it('nothing of a record that publishes nothing', () => {
    const { serving: _, ...nothing } = recordOf(1);
    expect(planRound([nothing], { now: NOW }, [])).toStrictEqual([]);
  });

  it('goes on with what earlier rounds left in doubt, unless that is long ago', () => {
    const [fresh] = planRound([recordOf(1)], { now: NOW }, [doubt(NOW - MINUTE)]);
    expect(fresh?.streak.failures).toBe(1);
    const [stale] = planRound([recordOf(1)], { now: NOW }, [doubt(NOW - 20 * MINUTE)]);
    expect(stale?.streak.failures).toBe(0);
  });

  it('each proxy once per interval, spread over it, however late the ticks come', () => {
    const late = fc.array(fc.integer({ min: 45_000, max: 75_000 }), { minLength: 40, maxLength: 40 });
    const intervalSeconds = 300;
    const healthCheck = { ...DEFAULT_HEALTH_CHECK, intervalSeconds };
    const records = Array.from({ length: 100 }, (_, index) => recordOf(index, { healthCheck }));
    fc.assert(
      fc.property(late, (distances) => {
        let previousAt = NOW;
        const seen = new Map<string, number[]>();
        for (const distance of distances) {
          const now = previousAt + distance;
          const ids = idsOf(planRound(records, { now, previousAt }, []));
          expect(ids.length).toBeLessThan(60);
          for (const id of ids) seen.set(id, [...(seen.get(id) ?? []), now]);
          previousAt = now;
        }
        expect(seen.size).toBe(100);
        for (const times of seen.values()) {
          const gaps = times.slice(1).map((time, index) => time - (times[index] ?? 0));
          for (const gap of gaps) expect(Math.abs(gap - intervalSeconds * 1000)).toBeLessThan(75_000);
        }
      }),
      { numRuns: 20 },
    );
  });

  it('endpoints without a verdict in every round, and everything in the first', () => {
    const healthCheck = { ...DEFAULT_HEALTH_CHECK, intervalSeconds: 3600 };
    const records = Array.from({ length: 20 }, (_, index) =>
      recordOf(index, { healthCheck, serving: published(`e${index}`, index === 0 ? 'Unknown' : 'Healthy') }),
    );
    expect(planRound(records, { now: NOW }, [])).toHaveLength(20);
    expect(idsOf(planRound(records, { now: NOW, previousAt: NOW - 1 }, []))).toContain('e0');
  });
});

const findings = (good: number, bad: number) =>
  Array.from({ length: good + bad }, (_, index) => {
    const [task] = planRound([recordOf(index)], { now: NOW }, []);
    if (!task) throw new TypeError('no task');
    const outcome = index < good ? 'Ok' : 'Timeout';
    const streak = [1, 2, 3].reduce(
      (row, at) => addResult(row, { endpointId: `e${index}`, at: NOW + at, outcome }),
      task.streak,
    );
    return findingOf(task, streak, NOW + 10);
  });

const inconclusive = (why: string) => ({ kind: 'inconclusive', why });

describe('whether a round may be believed (row 64, idea 9)', () => {
  const table: Record<string, [number, number, boolean, number, object]> = {
    'all is well': [20, 0, true, 0, { kind: 'conclusive' }],
    'some turn bad': [10, 10, true, 0, { kind: 'conclusive' }],
    'most of ten or more do': [4, 6, true, 0, inconclusive('MassFailure')],
    'most of fewer than ten do': [0, 9, true, 0, { kind: 'conclusive' }],
    'they still do in the fifth round': [4, 6, true, MASS_ROUNDS - 1, inconclusive('MassFailure')],
    'they still do after five': [4, 6, true, MASS_ROUNDS, { kind: 'conclusive' }],
    'the control fails': [20, 0, false, 0, inconclusive('ControlFailed')],
    'the control fails for long': [4, 6, false, 99, inconclusive('ControlFailed')],
    'there is nothing to probe': [0, 0, true, 0, { kind: 'conclusive' }],
  };
  it.each(Object.entries(table))('%s', (_, [good, bad, control, before, expected]) => {
    expect(conclude(findings(good, bad), control, before)).toStrictEqual(expected);
  });
});

const failing = (id: string) =>
  [1, 2, 3].reduce(
    (row, at) => addResult(row, { endpointId: id, at: NOW + at, outcome: 'Timeout' }),
    startStreak(id),
  );

describe('verdicts into a record', () => {
  it('change the endpoint that they are about, and nothing else', () => {
    const record = recordOf(1, { candidate: published('candidate') });
    const next = applyStreaks(record, [failing('candidate')], NOW);
    expect(next.candidate?.verdict.state).toBe('Unhealthy');
    expect(next).toStrictEqual({ ...record, candidate: next.candidate });
  });

  it('are dropped when their endpoint is no longer there (B1, N4)', () => {
    const record = recordOf(1);
    expect(applyStreaks(record, [failing('gone')], NOW)).toBe(record);
  });
});

it('a published endpoint is tried after 0.5, 1, 2, 4 s and every 5 s from then on', () => {
  expect([0, 1, 2, 3, 4, 5, 30].map(nextTryAfter)).toStrictEqual([500, 1000, 2000, 4000, 5000, 5000, 5000]);
});
