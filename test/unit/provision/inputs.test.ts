import { describe, expect, it } from 'vitest';

import { NOW, aMachine, anIntent, converged, facts, fresh, gcpDesired, seen } from './builders.ts';
import { conditionOf, kinds, planOf, reasonOf, writtenBy } from './plans.ts';

describe('inputs and configuration', () => {
  const trouble = { kind: 'trouble', message: 'Secret x …', secretVersions: { x: '7' } } as const;

  it.each(['SecretMissing', 'SecretNotLabelled', 'SecretKeyMissing'] as const)(
    'shows %s without creating, as judged, for a person to mend (W7)',
    (reason) => {
      const plan = planOf(fresh({ inputs: { ...trouble, reason, judged: true } }));
      expect(kinds(plan)).toEqual(['writeRecord']);
      expect(conditionOf(plan, 'Provisioned')).toMatchObject({ reason, message: 'Secret x …' });
      expect(conditionOf(plan, 'Stalled')?.status).toBe('True');
      expect(plan.status).toMatchObject({ observedGeneration: 3, observed: { secretVersions: { x: '7' } } });
      expect(plan.next).toEqual({});
    },
  );

  it('does not move observedGeneration when the Secret could not be read (W5)', () => {
    const status = { installation: 'prod', observedGeneration: 2, observed: { generation: 2 } };
    const plan = planOf(
      converged({
        proxy: facts({ status }),
        inputs: { ...trouble, reason: 'SecretUnreadable', judged: false },
      }),
    );
    expect(plan.status).toMatchObject({ observedGeneration: 2, observed: { generation: 2 } });
    expect(conditionOf(plan, 'Provisioned')?.observedGeneration).toBe(2);
  });

  it('keeps what serves while the Secret of a new generation is in trouble', () => {
    const plan = planOf(converged({ inputs: { ...trouble, reason: 'SecretMissing', judged: true } }));
    expect(writtenBy(plan)?.serving).toBeDefined();
    expect(reasonOf(plan, 'Ready')).toBe('ReplacementBlocked');
    expect(conditionOf(plan, 'Healthy')?.status).toBe('True');
  });

  it('withdraws a dead endpoint although the Secret is in trouble (B1)', () => {
    const plan = planOf(
      converged({
        inputs: { ...trouble, reason: 'SecretMissing', judged: true },
        fleet: seen(aMachine(anIntent(), { state: 'stopped' })),
      }),
    );
    expect(writtenBy(plan)).not.toHaveProperty('serving');
  });

  it('says that the provider is not configured, and wakes up to look again (B3)', () => {
    const plan = planOf(fresh({ fleet: { kind: 'notConfigured' } }));
    expect(reasonOf(plan, 'Provisioned')).toBe('ProviderNotConfigured');
    expect(writtenBy(plan)?.wakeAt).toBeLessThanOrEqual(NOW + 600_000);
    expect(kinds(planOf(fresh())), 'the same generation, once it is configured').toEqual(['writeRecord']);
  });

  it('passes labels, maxLeases, cordon and health checks on without touching the machine', () => {
    const desired = gcpDesired({ labels: { pool: 'x' }, maxLeases: 9, cordoned: true });
    const plan = planOf(converged({ proxy: facts({ desired, generation: 4 }) }));
    expect(kinds(plan)).toEqual(['writeRecord']);
    expect(writtenBy(plan)).toMatchObject({ labels: { pool: 'x' }, maxLeases: 9, cordoned: true });
    expect(conditionOf(plan, 'Ready')).toMatchObject({ status: 'True', reason: 'Cordoned' });
  });
});
