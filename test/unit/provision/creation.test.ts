import { describe, expect, it } from 'vitest';

import type { Refusal } from '../../../functions/provision/plan.ts';

import {
  HASH,
  NOW,
  ZONE,
  ZONES,
  aMachine,
  aRecord,
  absent,
  anIntent,
  converged,
  fresh,
  inputs,
  nameOf,
  seen,
} from './builders.ts';
import { conditionOf, kinds, planOf, reasonOf, stepOf, writtenBy } from './plans.ts';

const { instanceId: _never, ...unseen } = anIntent({ askedAt: NOW - 1_000 });
const creating = (change = {}) => converged({ record: aRecord({ machines: [unseen] }), ...change });
const refusal = (change: Partial<Refusal> = {}): Refusal => ({
  kind: 'create',
  machine: nameOf(HASH, 1),
  zone: ZONE,
  behaviour: 'CapacityUnavailable',
  code: 'ZONE_RESOURCE_POOL_EXHAUSTED',
  message: 'No capacity here.',
  ...change,
});

describe('a Proxy without a machine', () => {
  it('records name and zone before anything is asked for (W2, row 40)', () => {
    const plan = planOf(fresh());
    expect(kinds(plan)).toEqual(['writeRecord']);
    expect(writtenBy(plan)).toMatchObject({
      incarnation: 1,
      machines: [{ name: nameOf(HASH, 1), hash: HASH, zones: [ZONE] }],
    });
    expect(plan.next).toEqual({ again: true });
  });

  it('creates it once the intent is stored', () => {
    const plan = planOf(creating({ fleet: absent(unseen, 'untouched') }));
    expect(stepOf(plan, 'createMachine')).toEqual({
      kind: 'createMachine',
      name: nameOf(HASH, 1),
      hash: HASH,
      zone: ZONE,
    });
  });

  it('notes the operation and waits for it, saying so', () => {
    const pending = {
      kind: 'create',
      machine: nameOf(HASH, 1),
      operation: { zone: ZONE, name: 'op' },
    } as const;
    const plan = planOf(creating({ fleet: absent(unseen, 'inFlight'), pending: [pending] }));
    expect(writtenBy(plan)?.machines[0]?.operation).toMatchObject({ name: 'op', zone: ZONE });
    expect(plan.next).toEqual({ operations: [pending] });
    expect(reasonOf(plan, 'Provisioned')).toBe('Creating');
    expect(writtenBy(plan)?.wakeAt, 'whoever crashes now is woken (idea 10)').toBeLessThanOrEqual(
      NOW + 600_000,
    );
  });

  it('goes on waiting for an operation that another call began (row 23)', () => {
    const intent = { ...unseen, operation: { zone: ZONE, name: 'op', startedAt: NOW - 660_000 } };
    const plan = planOf(converged({ record: aRecord({ machines: [intent] }), fleet: absent(intent) }));
    expect(plan.next.operations).toMatchObject([{ operation: { name: 'op' } }]);
    expect(kinds(plan)).not.toContain('createMachine');
  });

  it('asks again, under the same name, when an answer was lost and nothing is there', () => {
    const plan = planOf(creating({ fleet: absent(unseen, 'absentOnce') }));
    expect(stepOf(plan, 'createMachine')?.name).toBe(nameOf(HASH, 1));
  });

  it('takes the next zone when one has no capacity (row 38)', () => {
    const plan = planOf(creating({ fleet: absent(unseen), refusals: [refusal()] }));
    const [intent] = writtenBy(plan)?.machines ?? [];
    expect(intent?.zones).toEqual(ZONES);
    expect(intent?.exhausted?.[ZONE]).toBeGreaterThan(NOW);
    expect(plan.next).toEqual({ again: true });
  });

  it('waits, and says what the provider said, when no zone has capacity (row 38)', () => {
    const intent = {
      ...unseen,
      zones: ZONES,
      exhausted: Object.fromEntries(ZONES.map((zone, index) => [zone, NOW + 60_000 + index])),
      failure: {
        behaviour: 'CapacityUnavailable',
        code: 'X',
        message: 'No capacity here.',
        count: 2,
        retryAt: NOW,
      },
    } as const;
    const plan = planOf(converged({ record: aRecord({ machines: [intent] }), fleet: absent(intent) }));
    expect(conditionOf(plan, 'Provisioned')).toMatchObject({
      reason: 'CapacityUnavailable',
      status: 'False',
    });
    expect(conditionOf(plan, 'Provisioned')?.message).toContain('No capacity here.');
    expect(writtenBy(plan)?.wakeAt).toBe(NOW + 60_000);
    expect(plan.next).toEqual({});
  });

  it.each([
    ['QuotaExceeded', 'QuotaExceeded', 'False'],
    ['InvalidSpec', 'InvalidSpec', 'True'],
    ['Transient', 'ProviderError', 'False'],
    ['Unauthorised', 'ProviderError', 'True'],
  ] as const)('remembers %s, shows it and asks again later (B3, row 39)', (behaviour, reason, stalled) => {
    const refused = refusal({ behaviour, code: 'CODE', message: 'In its own words.' });
    const plan = planOf(creating({ fleet: absent(unseen), refusals: [refused] }));
    expect(kinds(plan)).toEqual(['writeRecord']);
    expect(reasonOf(plan, 'Provisioned')).toBe(reason);
    expect(conditionOf(plan, 'Provisioned')?.message).toMatch(/^CODE: In its own words\. ./u);
    expect(conditionOf(plan, 'Stalled')?.status).toBe(stalled);
    const record = writtenBy(plan);
    expect(record?.wakeAt).toBeGreaterThan(NOW);
    expect(record?.wakeAt).toBeLessThanOrEqual(NOW + 600_000);
    expect(plan.status?.observedGeneration, 'this generation was judged (W5)').toBe(3);
  });

  it('waits longer after each refusal', () => {
    const waits = [0, 1, 2, 3, 9].map((count) => {
      const failure = {
        behaviour: 'QuotaExceeded',
        code: 'Q',
        message: '',
        count,
        retryAt: NOW - 1,
      } as const;
      const intent = { ...unseen, failure };
      const plan = planOf(
        converged({
          record: aRecord({ machines: [intent] }),
          fleet: absent(intent),
          refusals: [refusal({ behaviour: 'QuotaExceeded' })],
        }),
      );
      return (writtenBy(plan)?.machines[0]?.failure?.retryAt ?? 0) - NOW;
    });
    expect(waits.toSorted((a, b) => a - b)).toEqual(waits);
    expect(new Set(waits).size).toBeGreaterThan(3);
    expect(Math.max(...waits)).toBeLessThanOrEqual(600_000);
  });

  it('forgets the zone in which its very first call was refused outright: nothing can be there', () => {
    const refused = refusal({ behaviour: 'InvalidSpec', leftNothing: true });
    const plan = planOf(creating({ fleet: absent(unseen), refusals: [refused] }));
    expect(writtenBy(plan)?.machines[0]?.zones).toEqual([]);
  });

  it('recovers without an edit when a Secret is mended: another content is another machine (B3)', () => {
    const failure = {
      behaviour: 'InvalidSpec',
      code: 'X',
      message: '',
      count: 1,
      retryAt: NOW + 600_000,
    } as const;
    const intent = { ...unseen, failure };
    const plan = planOf(
      converged({
        record: aRecord({ machines: [intent] }),
        fleet: absent(intent),
        inputs: inputs({ hash: 'cccccccc33333333' }),
      }),
    );
    expect(writtenBy(plan)?.machines.at(-1)).toMatchObject({ hash: 'cccccccc33333333', incarnation: 2 });
  });
});

describe('a name that is taken (row 41)', () => {
  it('adopts our own machine after a crash between create and record (W2)', () => {
    const mine = aMachine({ ...unseen, instanceId: 'i-9' });
    const plan = planOf(creating({ fleet: seen(mine) }));
    expect(writtenBy(plan)?.machines[0]?.instanceId).toBe('i-9');
    expect(writtenBy(plan)?.serving?.endpoint).toMatchObject({ instanceId: 'i-9', host: '203.0.113.7' });
    expect(kinds(plan)).not.toContain('createMachine');
  });

  it.each([
    ['another installation', { installation: 'other' }],
    ['another Proxy', { uid: 'ffffffff-ffff-4fff-8fff-ffffffffffff' }],
  ])('leaves a machine of %s alone, and says so', (_, change) => {
    const stranger = aMachine(unseen, change);
    const plan = planOf(creating({ fleet: seen(stranger), refusals: [refusal({ behaviour: 'Conflict' })] }));
    expect(kinds(plan)).toEqual(['writeRecord']);
    expect(reasonOf(plan, 'Provisioned')).toBe('Conflict');
    expect(conditionOf(plan, 'Stalled')?.status).toBe('True');
  });

  it('takes another name when a leftover holds this one and no machine is there', () => {
    const old = { ...unseen, askedAt: NOW - 120_000 };
    const plan = planOf(
      converged({
        record: aRecord({ machines: [old] }),
        fleet: absent(old),
        refusals: [refusal({ behaviour: 'Conflict' })],
      }),
    );
    expect(writtenBy(plan)?.machines.map(({ name }) => name)).toEqual([nameOf(HASH, 2)]);
  });

  it('waits for its own machine that is stopping', () => {
    const plan = planOf(
      converged({ record: aRecord(), fleet: seen(aMachine(anIntent(), { state: 'stopping' })) }),
    );
    expect(kinds(plan).filter((kind) => kind !== 'writeRecord')).toEqual([]);
    expect(plan.next.pauseMs).toBeGreaterThan(0);
  });
});
