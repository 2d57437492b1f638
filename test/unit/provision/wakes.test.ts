import { describe, expect, it } from 'vitest';

import {
  NOW,
  aMachine,
  aPublication,
  aRecord,
  both,
  converged,
  newIntent,
  oldIntent,
  seen,
} from './builders.ts';
import { planOf, writtenBy } from './plans.ts';

/** The new machine serves, nobody has judged it yet, and the old one drains. */
const switched = (until: number, lastExpiry: number) => {
  const old = aPublication(oldIntent());
  return converged({
    record: aRecord({
      machines: [oldIntent(), newIntent()],
      serving: aPublication(newIntent(), 'Unknown'),
      draining: [{ ...old, until }],
    }),
    fleet: both(seen(aMachine(oldIntent())), seen(aMachine(newIntent()))),
    leases: { [old.endpoint.id]: { count: 1, lastExpiry } },
  });
};

describe('the next wake-up', () => {
  it('is for whatever comes first: the drain of the old machine, or the verdict on the new one', () => {
    const plan = planOf(switched(NOW + 290_000, NOW + 280_000));
    expect(writtenBy(plan)).toMatchObject({ wakeAt: NOW + 60_000, wakeReason: 'Draining' });
  });

  it('is waited for in the call when it is near', () => {
    expect(planOf(switched(NOW + 9_000, NOW + 280_000)).next.pauseMs).toBe(9_000);
  });
});
