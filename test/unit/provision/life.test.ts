import { describe, expect, it } from 'vitest';

import { aPublication, aRecord, anIntent, converged, facts, fresh } from './builders.ts';
import { kinds, planOf, writtenBy } from './plans.ts';

describe('a Proxy that is gone', () => {
  it('creates nothing for a message about a Proxy that does not exist (rows 17, 54)', () => {
    const { proxy: _gone, record: _none, ...observation } = converged();
    expect(planOf(observation)).toMatchObject({ steps: [], next: {} });
  });

  it('closes the gate at once and leaves the machine to gc when it went without its finalizer', () => {
    const { proxy: _gone, ...observation } = converged();
    const plan = planOf(observation);
    expect(kinds(plan)).toEqual(['writeRecord']);
    expect(writtenBy(plan)).toMatchObject({ gone: true, draining: [], machines: [anIntent()] });
    expect(writtenBy(plan)).not.toHaveProperty('serving');
    expect(writtenBy(plan)).not.toHaveProperty('wakeAt');
  });

  it('removes its credentials with its endpoints', () => {
    const { proxy: _gone, ...observation } = converged({
      record: aRecord({ serving: aPublication(anIntent()), credentials: ['e-1-aa'] }),
    });
    expect(kinds(planOf(observation))).toEqual(['writeRecord', 'removeCredentials']);
  });

  it('does nothing for a tombstone', () => {
    const { proxy: _gone, ...observation } = converged({ record: aRecord({ gone: true }) });
    expect(planOf(observation)).toMatchObject({ steps: [], next: {} });
  });
});

it("leaves another installation's Proxy alone, its status included (B2)", () => {
  const plan = planOf(converged({ proxy: facts({ status: { installation: 'other' }, deleting: true }) }));
  expect(plan).toMatchObject({ because: 'belongsToAnother', steps: [], events: [], next: {} });
  expect(plan.status).toBeUndefined();
});

describe('the finalizer', () => {
  it('is added before anything is recorded or created, and the pass goes on by itself (K2, W6)', () => {
    const plan = planOf(fresh({ proxy: facts({ hasFinalizer: false }) }));
    expect(plan).toMatchObject({ steps: [{ kind: 'addFinalizer' }], next: { again: true } });
    expect(plan.status, 'observedGeneration does not move for a finalizer (W5)').toBeUndefined();
  });

  it('is never added to a Proxy that is being deleted, which creates nothing (row 56)', () => {
    const plan = planOf(fresh({ proxy: facts({ hasFinalizer: false, deleting: true }) }));
    expect(plan).toMatchObject({ steps: [], next: {} });
  });

  it('that somebody took from a Proxy under deletion closes the gate for good', () => {
    const plan = planOf(converged({ proxy: facts({ hasFinalizer: false, deleting: true }) }));
    expect(writtenBy(plan)).toMatchObject({ gone: true });
    expect(kinds(plan)).not.toContain('deleteMachine');
  });

  it('goes at once when nothing was ever made', () => {
    expect(kinds(planOf(fresh({ proxy: facts({ deleting: true }) })))).toEqual(['removeFinalizer']);
  });
});
