import { describe, expect, it } from 'vitest';

import type { MachineIntent } from '#shared/domain/record.ts';

import {
  HASH,
  NOW,
  aMachine,
  absent,
  anIntent,
  aRecord,
  converged,
  facts,
  gcpDesired,
  nameOf,
  seen,
  spot,
} from './builders.ts';
import { conditionOf, kinds, planOf, writtenBy } from './plans.ts';

const SPOT = facts({ desired: spot(gcpDesired()) });

/** What a lost machine leaves behind: the intent of the next one. */
const next = (lost: MachineIntent, state: 'stopped' | 'failed' = 'stopped'): MachineIntent | undefined => {
  const fleet = seen(aMachine(lost, { state, detail: 'Instance was preempted.' }));
  return writtenBy(
    planOf(converged({ proxy: SPOT, record: aRecord({ machines: [lost] }), fleet })),
  )?.machines.at(-1);
};

const again = (count: number, age: number): MachineIntent | undefined =>
  next(
    anIntent({
      askedAt: NOW - age,
      insteadOf: { reason: 'MachineStopped', message: 'm', count, notBefore: NOW - age },
    }),
  );

describe('a machine that is lost (row 45)', () => {
  it('is made good at once, and the next one says why it is made', () => {
    const lost = next(anIntent())?.insteadOf;
    expect(lost).toMatchObject({ reason: 'MachineStopped', count: 1, notBefore: NOW });
    expect(lost?.message).toContain('Instance was preempted.');
  });

  it.each([
    [1, 7_500],
    [2, 15_000],
    [3, 30_000],
    [20, 450_000],
  ])('after %i others in a row the next one waits, ever longer, and no longer than that', (count, wait) => {
    expect(again(count, 60_000)?.insteadOf).toMatchObject({ count: count + 1, notBefore: NOW + wait });
  });

  it('begins from one again after a machine that had lasted', () => {
    expect(again(7, 900_000)?.insteadOf).toMatchObject({ count: 1, notBefore: NOW });
  });

  const { instanceId: _never, ...unborn } = anIntent({ name: nameOf(HASH, 2), incarnation: 2 });
  const waiting = (notBefore: number) => {
    const intent = {
      ...unborn,
      insteadOf: { reason: 'MachineGone', message: 'It was lost.', count: 3, notBefore } as const,
    };
    return planOf(
      converged({ record: aRecord({ machines: [intent] }), fleet: absent(intent, 'absentTwice') }),
    );
  };
  it('is told while the next one waits, with the time of the next try', () => {
    const plan = waiting(NOW + 60_000);
    expect(kinds(plan)).toEqual(['writeRecord']);
    expect(conditionOf(plan, 'Provisioned')).toMatchObject({
      status: 'False',
      reason: 'MachineGone',
    });
    expect(conditionOf(plan, 'Provisioned')?.message).toContain(
      'It was lost. It was number 3 in a row; the next machine is asked for at 2026-11-30T12:01:00Z. Find out',
    );
    expect(writtenBy(plan)).toMatchObject({ wakeAt: NOW + 60_000, wakeReason: 'MachineGone' });
  });

  it('has its successor asked for when the wait is over', () => {
    expect(kinds(waiting(NOW))).toContain('createMachine');
  });
});

const refused = (zones: readonly string[]) => {
  const { instanceId: _none, ...intent } = anIntent();
  const proxy = facts({ desired: gcpDesired({ zones: ['zone-a', 'zone-b', 'zone-c'] }) });
  const record = aRecord({ machines: [{ ...intent, zones: ['zone-a'] }] });
  const fleet = absent({ ...intent, zones: ['zone-a'] }, 'untouched');
  const refusal = {
    kind: 'create',
    machine: intent.name,
    zone: 'zone-a',
    behaviour: 'CapacityUnavailable',
    code: 'c',
    message: 'm',
    zones,
  } as const;
  return writtenBy(planOf(converged({ proxy, record, fleet, refusals: [refusal] })))?.machines[0]?.zones;
};

describe('a zone without capacity (row 38)', () => {
  it('is followed by the one that the provider names, where the spec has it', () => {
    expect(refused(['zone-c'])?.at(-1)).toBe('zone-c');
    expect(refused(['zone-a', 'zone-x'])?.at(-1)).toBe('zone-b');
    expect(refused([])?.at(-1)).toBe('zone-b');
  });
});
