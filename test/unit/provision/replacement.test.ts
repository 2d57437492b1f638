import { describe, expect, it } from 'vitest';

import {
  HASH,
  NOW,
  OLD_HASH,
  UID,
  aMachine,
  aPublication,
  absent,
  both,
  converged,
  edited,
  facts,
  gcpDesired,
  inputs,
  nameOf,
  newIntent,
  oldIntent,
  seen,
} from './builders.ts';
import { conditionOf, kinds, planOf, reasonOf, stepOf, writtenBy } from './plans.ts';

const OLD = aMachine(oldIntent());
const NEW = aMachine(newIntent(), { address: '203.0.113.8' });
const candidate = (state: 'Unknown' | 'Healthy' | 'Unhealthy', publishedAt = NOW - 60_000) =>
  aPublication(newIntent(), state, {
    publishedAt,
    endpoint: { ...aPublication(newIntent()).endpoint, host: '203.0.113.8' },
  });
const machines = [oldIntent(), newIntent()];

describe('RollingUpdate', () => {
  it('records a second machine while the old one serves', () => {
    const plan = planOf(edited());
    expect(writtenBy(plan)?.machines).toMatchObject([{ hash: OLD_HASH }, { hash: HASH, incarnation: 2 }]);
    expect(writtenBy(plan)?.serving?.machine).toBe(nameOf(OLD_HASH, 1));
    expect(kinds(plan)).not.toContain('deleteMachine');
  });

  it('publishes the new machine as candidate, with a verdict of its own', () => {
    const plan = planOf(edited({ machines }, {}, [NEW]));
    expect(writtenBy(plan)).toMatchObject({
      serving: { machine: nameOf(OLD_HASH, 1), verdict: { state: 'Healthy' } },
      candidate: { machine: nameOf(HASH, 2), verdict: { state: 'Unknown' } },
    });
    expect(reasonOf(plan, 'Ready')).toBe('Replacing');
    expect(conditionOf(plan, 'Healthy')?.status).toBe('True');
    expect(plan.status).toMatchObject({ host: '203.0.113.7', replacement: { reason: 'SpecChanged' } });
  });

  it('waits for the verdict', () => {
    const plan = planOf(edited({ machines, candidate: candidate('Unknown') }, {}, [NEW]));
    expect(writtenBy(plan)?.serving?.machine).toBe(nameOf(OLD_HASH, 1));
    expect(plan.next).toEqual({});
  });

  it('switches in one write when the candidate is healthy; the old one drains', () => {
    const plan = planOf(edited({ machines, candidate: candidate('Healthy') }, {}, [NEW]));
    expect(kinds(plan)).toEqual(['writeRecord']);
    expect(writtenBy(plan)).toMatchObject({
      serving: { machine: nameOf(HASH, 2) },
      draining: [{ machine: nameOf(OLD_HASH, 1), until: NOW + 300_000 }],
    });
    expect(writtenBy(plan)).not.toHaveProperty('candidate');
  });

  const switched = {
    machines,
    serving: candidate('Healthy'),
    draining: [{ ...aPublication(oldIntent()), until: NOW + 200_000 }],
  };

  it('keeps the old machine while leases run on it, and is Ready', () => {
    const leases = { [aPublication(oldIntent()).endpoint.id]: { count: 1, lastExpiry: NOW + 100_000 } };
    const plan = planOf(edited(switched, { leases }, [NEW]));
    expect(kinds(plan)).toEqual(['writeRecord']);
    expect(writtenBy(plan)?.wakeAt).toBe(NOW + 60_000);
    expect(reasonOf(plan, 'Ready')).toBe('Ready');
  });

  it('deletes the old machine when its leases have ended, withdrawal first', () => {
    const plan = planOf(edited(switched, {}, [NEW]));
    expect(kinds(plan)).toEqual(['writeRecord', 'deleteMachine']);
    expect(writtenBy(plan)?.draining).toEqual([]);
    expect(stepOf(plan, 'deleteMachine')?.machine).toEqual(OLD);
  });

  it('forgets the old machine when it is proven gone, and has converged', () => {
    const plan = planOf(
      edited({ machines, serving: candidate('Healthy') }, { fleet: both(absent(oldIntent()), seen(NEW)) }),
    );
    expect(writtenBy(plan)?.machines).toEqual([newIntent()]);
    expect(writtenBy(plan)).not.toHaveProperty('wakeAt');
    expect(reasonOf(plan, 'Ready')).toBe('Ready');
  });

  it.each([
    ['is unhealthy', candidate('Unhealthy')],
    ['was never judged', candidate('Unknown', NOW - 400_000)],
  ])('leaves the old one serving when the candidate %s, and says so', (_what, bad) => {
    const plan = planOf(edited({ machines, candidate: bad }, {}, [NEW]));
    expect(writtenBy(plan)?.serving?.machine).toBe(nameOf(OLD_HASH, 1));
    expect(conditionOf(plan, 'Ready')).toMatchObject({ status: 'False', reason: 'ReplacementBlocked' });
    expect(conditionOf(plan, 'Healthy')?.status).toBe('True');
    expect(kinds(plan)).not.toContain('deleteMachine');
  });

  it('leaves the old one serving when the new one cannot be had', () => {
    const { instanceId: _never, ...refused } = newIntent({
      failure: {
        behaviour: 'QuotaExceeded',
        code: 'Q',
        message: 'No quota.',
        count: 1,
        retryAt: NOW + 60_000,
      },
    });
    const plan = planOf(
      edited({ machines: [oldIntent(), refused] }, { fleet: both(seen(OLD), absent(refused)) }),
    );
    expect(reasonOf(plan, 'Provisioned')).toBe('QuotaExceeded');
    expect(reasonOf(plan, 'Ready')).toBe('ReplacementBlocked');
    expect(plan.status?.host).toBe('203.0.113.7');
  });

  it('lets the candidate take over at once when the old one dies', () => {
    const plan = planOf(
      converged({
        record: edited({ machines, candidate: candidate('Unknown') }).record ?? never(),
        fleet: both(seen(aMachine(oldIntent(), { state: 'stopped' })), seen(NEW)),
      }),
    );
    expect(writtenBy(plan)).not.toHaveProperty('serving');
    const next = planOf(converged({ record: writtenBy(plan) ?? never(), fleet: seen(NEW) }));
    expect(writtenBy(next)?.serving?.machine).toBe(nameOf(HASH, 2));
  });
});

const never = (): never => {
  throw new Error('there should be one');
};

describe('edits during a replacement', () => {
  it('drop the candidate of the edit before, and then its machine', () => {
    const third = inputs({ hash: 'cccccccc33333333' });
    const plan = planOf(edited({ machines, candidate: candidate('Unknown') }, { inputs: third }, [NEW]));
    expect(writtenBy(plan)).not.toHaveProperty('candidate');
    const next = planOf(edited({ ...writtenBy(plan), wakeAt: NOW + 1 }, { inputs: third }, [NEW]));
    expect(stepOf(next, 'deleteMachine')?.machine).toEqual(NEW);
    expect(writtenBy(next)?.machines.at(-1)).toMatchObject({ hash: 'cccccccc33333333', incarnation: 3 });
    expect(writtenBy(next)?.serving?.machine).toBe(nameOf(OLD_HASH, 1));
  });

  it('back to the old spec cancel the replacement without a new machine', () => {
    const back = inputs({ hash: OLD_HASH });
    const plan = planOf(edited({ machines, candidate: candidate('Healthy') }, { inputs: back }, [NEW]));
    expect(writtenBy(plan)).not.toHaveProperty('candidate');
    const next = planOf(edited({}, { record: writtenBy(plan) ?? never(), inputs: back }, [NEW]));
    expect(stepOf(next, 'deleteMachine')?.machine).toEqual(NEW);
    expect(kinds(next)).not.toContain('createMachine');
    expect(writtenBy(next)).toBeUndefined();
  });
});

it('goes back to a spec whose machine was told to go with another machine (W4)', () => {
  const leaving = oldIntent({ deleteRequestedAt: NOW - 60_000 });
  const { serving: _drained, ...record } = edited({ machines: [leaving] }).record ?? never();
  const plan = planOf(converged({ record, inputs: inputs({ hash: OLD_HASH }), fleet: seen(OLD) }));
  expect(writtenBy(plan)?.machines).toMatchObject([{ incarnation: 1 }, { hash: OLD_HASH, incarnation: 2 }]);
  expect(writtenBy(plan)).not.toHaveProperty('serving');
});

describe('Recreate', () => {
  const proxy = facts({ desired: gcpDesired({ strategy: 'Recreate' }) });

  it('takes the old endpoint out of use first', () => {
    const plan = planOf(edited({}, { proxy }));
    expect(kinds(plan)).toEqual(['writeRecord']);
    expect(writtenBy(plan)?.draining).toMatchObject([{ machine: nameOf(OLD_HASH, 1) }]);
    expect(writtenBy(plan)?.machines).toHaveLength(1);
  });

  it('deletes the old machine, and makes the new one only when that is proven gone', () => {
    const { serving: _drained, ...record } = edited().record ?? never();
    const leaving = planOf(converged({ proxy, record, fleet: seen(OLD) }));
    expect(kinds(leaving)).toContain('deleteMachine');
    expect(writtenBy(leaving)?.machines).toHaveLength(1);
    const gone = planOf(converged({ proxy, record, fleet: absent(oldIntent()) }));
    expect(writtenBy(gone)?.machines).toMatchObject([{ hash: HASH, incarnation: 2 }]);
  });
});

it('tells each change of a condition once, as an Event', () => {
  const first = planOf(converged());
  expect(first.events.map(({ reason }) => reason)).toEqual(['Provisioned', 'ProbeSucceeded', 'Ready']);
  const again = planOf(converged({ proxy: facts({ status: first.status ?? {}, generation: 4 }) }));
  expect(again.events).toEqual([]);
  expect(UID).toHaveLength(36);
});
