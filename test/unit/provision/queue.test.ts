import { describe, expect, it } from 'vitest';

import type { Turn } from '../../../functions/provision/plan.ts';
import { slots } from '../../../functions/provision/queue.ts';
import type { ProxyRecord } from '#shared/domain/record.ts';
import type { VerdictState } from '#shared/domain/verdict.ts';

import {
  HASH,
  NOW,
  OLD_HASH,
  aMachine,
  aPublication,
  anIntent,
  aRecord,
  both,
  conditionOf,
  converged,
  edited,
  facts,
  gcpDesired,
  inputs,
  kinds,
  newIntent,
  oldIntent,
  planOf,
  reasonOf,
  seen,
  writtenBy,
} from './builders.ts';

const { replacement: _granted, ...unplaced } = edited().record ?? aRecord();
const WAITING = { at: NOW - 60_000, granted: false };
const turn = (change: Partial<Turn> = {}): Turn => ({ ahead: 2, fleet: 8, percent: 25, ...change });
const waiting = (change: Partial<Turn> = {}) => edited({ replacement: WAITING }, { turn: turn(change) });

const placed = (state: VerdictState): ProxyRecord =>
  aRecord({ serving: aPublication(anIntent(), state), replacement: { ...WAITING, granted: true } });

describe('at most a share of the fleet is replaced at once:', () => {
  it.each([
    [1, 25, 1],
    [7, 25, 1],
    [8, 25, 2],
    [1000, 25, 250],
    [10, 100, 10],
    [10, 1, 1],
  ])('of %i Proxies %i %% are %i', (fleet, percent, expected) => {
    expect(slots({ fleet, percent })).toBe(expected);
  });

  it('who wants another machine asks for a place first, and looks a moment later', () => {
    const plan = planOf(edited({}, { record: unplaced }));
    expect(kinds(plan)).toEqual(['writeRecord']);
    expect(writtenBy(plan)).toMatchObject({
      replacement: { at: NOW, granted: false },
      machines: [{ hash: OLD_HASH }],
    });
    expect(plan.next).toEqual({ pauseMs: 1000 });
  });

  it('waits while as many as are allowed came earlier, serves on, and says for whom', () => {
    const plan = planOf(waiting({ oldest: 'crawlers/first' }));
    expect(reasonOf(plan, 'Provisioned')).toBe('ReplacementQueued');
    expect(conditionOf(plan, 'Ready')).toMatchObject({ status: 'False', reason: 'ReplacementQueued' });
    expect(reasonOf(plan, 'Healthy')).toBe('ProbeSucceeded');
    expect(conditionOf(plan, 'Ready')?.message).toContain('crawlers/first');
    expect(conditionOf(plan, 'Ready')?.message).toContain('25 %');
    expect(writtenBy(plan)).toMatchObject({
      replacement: WAITING,
      wakeReason: 'ReplacementQueued',
      serving: { machine: oldIntent().name },
    });
    expect(plan.next).toEqual({});
  });

  it('goes on when its turn has come', () => {
    const plan = planOf(waiting({ ahead: 1 }));
    expect(writtenBy(plan)?.replacement).toEqual({ ...WAITING, granted: true });
    expect(plan.next).toEqual({ again: true });
  });

  it('Recreate takes nothing away before its turn', () => {
    const proxy = facts({ desired: gcpDesired({ strategy: 'Recreate' }) });
    const plan = planOf({ ...waiting(), proxy });
    expect(writtenBy(plan)?.serving?.machine).toBe(oldIntent().name);
    expect(reasonOf(plan, 'Ready')).toBe('ReplacementQueued');
  });

  it('what serves nobody well is replaced without waiting', () => {
    const plan = planOf(
      edited({}, { record: { ...unplaced, serving: aPublication(oldIntent(), 'Unhealthy') } }),
    );
    expect(writtenBy(plan)?.machines).toMatchObject([{ hash: OLD_HASH }, { hash: HASH }]);
  });

  it('a place is given up when the new machine is healthy, and kept while it is not', () => {
    expect(writtenBy(planOf(converged({ record: placed('Healthy') })))).not.toHaveProperty('replacement');
    for (const state of ['Unhealthy', 'Unknown'] as const) {
      const record = placed(state);
      expect((writtenBy(planOf(converged({ record }))) ?? record).replacement).toBeDefined();
    }
  });

  it('a candidate that never gets healthy keeps its place', () => {
    const candidate = aPublication(newIntent(), 'Unhealthy');
    const machines = [oldIntent(), newIntent()];
    const plan = planOf(
      edited(
        { machines, candidate },
        { fleet: both(seen(aMachine(oldIntent())), seen(aMachine(newIntent()))) },
      ),
    );
    expect(reasonOf(plan, 'Ready')).toBe('ReplacementBlocked');
    expect(writtenBy(plan)?.replacement).toMatchObject({ granted: true });
  });

  it('a spec that comes back gives its place up', () => {
    const plan = planOf(edited({}, { inputs: inputs({ hash: OLD_HASH }) }));
    expect(writtenBy(plan)).not.toHaveProperty('replacement');
  });

  it('who cannot use a place does not stand in the queue, nor does a Proxy that is being deleted', () => {
    const trouble = { kind: 'trouble', reason: 'SecretMissing', message: 'm', judged: true } as const;
    const blocked = { ...waiting(), inputs: { ...trouble, secretVersions: {} } };
    expect(writtenBy(planOf(blocked))).not.toHaveProperty('replacement');
    const going = edited({}, { proxy: facts({ deleting: true }) });
    expect(writtenBy(planOf(going))).not.toHaveProperty('replacement');
  });

  it('a refused spec gives its place to the next, since it endangers nothing', () => {
    const { instanceId: _never, ...asked } = newIntent();
    const failure = {
      behaviour: 'InvalidSpec',
      code: 'c',
      message: 'm',
      count: 1,
      retryAt: NOW + 1,
    } as const;
    const plan = planOf(edited({ machines: [oldIntent(), { ...asked, failure }] }));
    expect(reasonOf(plan, 'Ready')).toBe('ReplacementBlocked');
    expect(writtenBy(plan)).not.toHaveProperty('replacement');
  });
});
