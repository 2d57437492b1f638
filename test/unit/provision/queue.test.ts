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
  absent,
  both,
  converged,
  edited,
  facts,
  gcpDesired,
  inputs,
  newIntent,
  oldIntent,
  seen,
} from './builders.ts';
import { conditionOf, kinds, planOf, reasonOf, writtenBy } from './plans.ts';

const { replacement: _granted, ...unplaced } = edited().record ?? aRecord();
const WAITING = { at: NOW - 60_000, granted: false, hash: HASH };
const turn = (change: Partial<Turn> = {}): Turn => ({ ahead: 2, stuck: 0, fleet: 8, percent: 25, ...change });
const waiting = (change: Partial<Turn> = {}) => edited({ replacement: WAITING }, { turn: turn(change) });

const placed = (state: VerdictState): ProxyRecord =>
  aRecord({ serving: aPublication(anIntent(), state), replacement: { ...WAITING, granted: true } });

const blockedBy = (state: VerdictState, place: object = {}) =>
  edited(
    {
      machines: [oldIntent(), newIntent()],
      candidate: aPublication(newIntent(), state),
      replacement: { ...WAITING, granted: true, ...place },
    },
    { fleet: both(seen(aMachine(oldIntent())), seen(aMachine(newIntent()))) },
  );

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
      replacement: { at: NOW, granted: false, hash: HASH },
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

  it('one that never gets healthy is marked, so that only those that want the same wait for it', () => {
    expect(writtenBy(planOf(blockedBy('Unhealthy')))?.replacement).toEqual({
      ...WAITING,
      granted: true,
      stuck: true,
    });
  });

  it('one that gets on again is no longer marked', () => {
    const plan = planOf(blockedBy('Unknown', { stuck: true }));
    expect(reasonOf(plan, 'Provisioned')).toBe('Replacing');
    expect(writtenBy(plan)?.replacement).toEqual({ ...WAITING, granted: true });
  });

  it('one that came to serve, since the old one was lost, and does not answer is marked; not so with Recreate', () => {
    const record = placed('Unhealthy');
    const place = { ...WAITING, granted: true };
    expect(writtenBy(planOf(converged({ record })))?.replacement).toEqual({ ...place, stuck: true });
    const proxy = facts({ desired: gcpDesired({ strategy: 'Recreate' }) });
    const plan = planOf(converged({ record, proxy }));
    expect((writtenBy(plan) ?? record).replacement).toEqual(place);
  });

  it('with nothing that serves it stays in the way of all: no more than the share may be without an endpoint', () => {
    const { instanceId: _never, ...asked } = newIntent();
    const behaviour = 'QuotaExceeded';
    const failure = { behaviour, code: 'c', message: 'm', count: 1, retryAt: NOW + 9_000 } as const;
    const record = aRecord({
      machines: [{ ...asked, failure }],
      replacement: { ...WAITING, granted: true },
    });
    const plan = planOf(converged({ record, fleet: absent(asked) }));
    expect(reasonOf(plan, 'Provisioned')).toBe('QuotaExceeded');
    expect((writtenBy(plan) ?? record).replacement).not.toHaveProperty('stuck');
  });

  it('who wants the machine that others are stuck on is held, in nobody’s way, and is told of whom', () => {
    const plan = planOf(waiting({ ahead: 0, stuck: 2, oldest: 'crawlers/stuck' }));
    expect(writtenBy(plan)?.replacement).toEqual({ ...WAITING, held: true });
    expect(conditionOf(plan, 'Ready')).toMatchObject({ reason: 'ReplacementQueued' });
    expect(conditionOf(plan, 'Ready')?.message).toMatch(/same machine.*crawlers\/stuck/u);
    expect(plan.next).toEqual({});
  });

  it('who wants that machine fills up the share with those that are stuck on it, and no more', () => {
    expect(planOf(waiting({ ahead: 0, stuck: 1 })).because).toBe('itsTurnHasCome');
    expect(planOf(waiting({ ahead: 1, stuck: 1 })).because).toBe('replacementIsQueued');
  });

  it('who was held and is no longer begins at the end of the queue, where everybody sees it', () => {
    const plan = planOf(edited({ replacement: { ...WAITING, held: true } }, { turn: turn({ ahead: 0 }) }));
    expect(writtenBy(plan)?.replacement).toEqual({ at: NOW, granted: false, hash: HASH });
    expect(plan.next).toEqual({ pauseMs: 1000 });
  });

  it('a spec that changes while it waits keeps its place, for another machine', () => {
    const plan = planOf(edited({ replacement: { ...WAITING, hash: 'dddddddd44444444' } }, { turn: turn() }));
    expect(writtenBy(plan)?.replacement).toEqual(WAITING);
  });

  it('who gave its place up after a refusal asks for one again before the next try', () => {
    const { instanceId: _never, ...asked } = newIntent();
    const behaviour = 'InvalidSpec';
    const failure = { behaviour, code: 'c', message: 'm', count: 1, retryAt: NOW - 1 } as const;
    const fleet = both(seen(aMachine(oldIntent())), absent(asked));
    const record = { ...unplaced, machines: [oldIntent(), { ...asked, failure }] };
    const plan = planOf(edited({}, { record, fleet }));
    expect(plan.because).toBe('replacementIsAnnounced');
    expect(kinds(plan)).toEqual(['writeRecord']);
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
