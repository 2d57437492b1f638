import { describe, expect, it } from 'vitest';

import {
  aPublication,
  HASH,
  NOW,
  aMachine,
  aRecord,
  absent,
  anIntent,
  converged,
  external,
  facts,
  nameOf,
  seen,
  unanswered,
} from './builders.ts';
import { conditionOf, kinds, planOf, reasonOf, stepOf, writtenBy } from './plans.ts';

describe('deletion', () => {
  const deleting = facts({ deleting: true });
  const draining = { ...aPublication(anIntent()), until: NOW + 300_000 };

  it('begins by closing the gate, before any machine is touched', () => {
    const plan = planOf(converged({ proxy: deleting }));
    expect(kinds(plan)).toEqual(['writeRecord']);
    expect(writtenBy(plan)).toMatchObject({ deleting: true, draining: [{ until: NOW + 300_000 }] });
    expect(writtenBy(plan)).not.toHaveProperty('serving');
    expect(plan.next).toEqual({ again: true });
  });

  it('waits for running leases, and says so', () => {
    const plan = planOf(
      converged({
        proxy: deleting,
        record: aRecord({ deleting: true, draining: [draining] }),
        leases: { [draining.endpoint.id]: { count: 2, lastExpiry: NOW + 250_000 } },
      }),
    );
    expect(kinds(plan)).toEqual(['writeRecord']);
    expect(writtenBy(plan)?.wakeAt).toBe(NOW + 60_000);
    expect(reasonOf(plan, 'Provisioned')).toBe('Draining');
    expect(reasonOf(plan, 'Ready')).toBe('Deleting');
  });

  it('waits in the call for the end of a drain that is near', () => {
    const plan = planOf(
      converged({
        proxy: deleting,
        record: aRecord({ deleting: true, draining: [{ ...draining, until: NOW + 4_000 }] }),
        leases: { [draining.endpoint.id]: { count: 1, lastExpiry: NOW + 250_000 } },
      }),
    );
    expect(plan.next.pauseMs).toBe(4_000);
  });

  it('deletes the machine as soon as no lease is left', () => {
    const plan = planOf(
      converged({ proxy: deleting, record: aRecord({ deleting: true, draining: [draining] }) }),
    );
    expect(kinds(plan)).toEqual(['writeRecord', 'deleteMachine']);
    expect(stepOf(plan, 'deleteMachine')?.machine.name).toBe(nameOf(HASH, 1));
  });

  it('does not wait for leases longer than drainTimeoutSeconds', () => {
    const plan = planOf(
      converged({
        proxy: deleting,
        record: aRecord({ deleting: true, draining: [{ ...draining, until: NOW }] }),
        leases: { [draining.endpoint.id]: { count: 2, lastExpiry: NOW + 250_000 } },
      }),
    );
    expect(kinds(plan)).toContain('deleteMachine');
  });

  it.each([
    ['is stopping', aMachine(anIntent(), { state: 'stopping' }), {}],
    ['was told to go', aMachine(anIntent()), { deleteRequestedAt: NOW - 60_000 }],
  ])('only watches a machine that %s (W1)', (_what, machine, told) => {
    const plan = planOf(
      converged({
        proxy: deleting,
        record: aRecord({ deleting: true, machines: [anIntent(told)] }),
        fleet: seen(machine),
      }),
    );
    expect(kinds(plan)).not.toContain('deleteMachine');
    expect(plan.next.pauseMs).toBeGreaterThan(0);
    expect(reasonOf(plan, 'Provisioned')).toBe('Deleting');
  });

  it('asks again when a machine still runs long after it was told to go', () => {
    const plan = planOf(
      converged({
        proxy: deleting,
        record: aRecord({ deleting: true, machines: [anIntent({ deleteRequestedAt: NOW - 700_000 })] }),
      }),
    );
    expect(kinds(plan)).toContain('deleteMachine');
  });

  it('asks again once, not in every pass, when a machine told to go long ago was told again', () => {
    const told = anIntent({ deleteRequestedAt: NOW - 700_000 });
    const plan = planOf(
      converged({
        proxy: deleting,
        record: aRecord({ deleting: true, machines: [told] }),
        fleet: seen(aMachine(told)),
        deletesSent: { [aMachine(told).instanceId]: NOW - 1_000 },
      }),
    );
    expect(kinds(plan)).not.toContain('deleteMachine');
    expect(plan.next.pauseMs).toBeGreaterThan(0);
  });

  it('keeps the finalizer while absence was seen only once (K3)', () => {
    const plan = planOf(
      converged({
        proxy: deleting,
        record: aRecord({ deleting: true }),
        fleet: absent(anIntent(), 'absentOnce'),
      }),
    );
    expect(kinds(plan)).not.toContain('removeFinalizer');
    expect(plan.next.pauseMs).toBe(3_000);
  });

  it('removes what credentials there are before the finalizer', () => {
    const record = aRecord({ deleting: true, credentials: ['e-1', 'e-2'] });
    const plan = planOf(converged({ proxy: deleting, record, fleet: absent(anIntent()) }));
    expect(kinds(plan)).toEqual(['writeRecord', 'removeCredentials', 'removeFinalizer']);
    expect(stepOf(plan, 'removeCredentials')?.endpointIds).toEqual(['e-1', 'e-2']);
  });

  it('removes the finalizer when the machine is proven gone (row 44)', () => {
    const plan = planOf(
      converged({ proxy: deleting, record: aRecord({ deleting: true }), fleet: absent(anIntent()) }),
    );
    expect(kinds(plan)).toEqual(['writeRecord', 'removeFinalizer']);
    expect(writtenBy(plan)).toMatchObject({ gone: true, machines: [] });
    expect(plan.status, 'there may be nothing left to write it to').toBeUndefined();
  });

  it('waits for a create call whose answer was lost: it may succeed yet (row 40)', () => {
    const { instanceId: _never, ...unseen } = anIntent({ askedAt: NOW - 10_000 });
    const plan = planOf(
      converged({
        proxy: deleting,
        record: aRecord({ deleting: true, machines: [unseen] }),
        fleet: absent(unseen),
      }),
    );
    expect(kinds(plan)).not.toContain('removeFinalizer');
  });

  it('waits for a create operation that still runs', () => {
    const { instanceId: _never, ...unseen } = anIntent({
      operation: { zone: 'z', name: 'op-1', startedAt: NOW - 600_000 },
    });
    const plan = planOf(
      converged({
        proxy: deleting,
        record: aRecord({ deleting: true, machines: [unseen] }),
        fleet: absent(unseen),
      }),
    );
    expect(plan.next.operations).toMatchObject([{ kind: 'create', operation: { name: 'op-1' } }]);
    expect(kinds(plan)).not.toContain('removeFinalizer');
  });

  it('shows a refused delete call with its reason and the words of the provider (W1)', () => {
    const plan = planOf(
      converged({
        proxy: deleting,
        record: aRecord({ deleting: true, machines: [anIntent({ deleteRequestedAt: NOW - 1_000 })] }),
        refusals: [
          {
            kind: 'delete',
            machine: nameOf(HASH, 1),
            zone: 'z',
            behaviour: 'QuotaExceeded',
            code: 'QUOTA',
            message: 'Too many deletes.',
          },
        ],
      }),
    );
    expect(conditionOf(plan, 'Provisioned')).toMatchObject({ status: 'False', reason: 'QuotaExceeded' });
    expect(conditionOf(plan, 'Provisioned')?.message).toContain('QUOTA: Too many deletes.');
    expect(kinds(plan)).not.toContain('deleteMachine');
    expect(writtenBy(plan)?.wakeAt).toBeGreaterThan(NOW);
    expect(writtenBy(plan)?.machines, 'it counts as not told yet').toEqual([anIntent()]);
  });

  it('says that the provider is not configured, and keeps the finalizer (W1)', () => {
    const plan = planOf(
      converged({
        proxy: deleting,
        record: aRecord({ deleting: true }),
        fleet: { kind: 'notConfigured' },
      }),
    );
    expect(reasonOf(plan, 'Provisioned')).toBe('ProviderNotConfigured');
    expect(kinds(plan)).toEqual(['writeRecord']);
  });

  it('says why while the provider is away, and comes back (W1)', () => {
    const plan = planOf(
      converged({
        proxy: deleting,
        record: aRecord({ deleting: true }),
        fleet: unanswered(anIntent(), '503: Backend Error', true),
      }),
    );
    expect(conditionOf(plan, 'Provisioned')?.message).toContain('503: Backend Error');
    expect(plan.next).toEqual({ retry: true });
    expect(writtenBy(plan)?.wakeAt).toBe(NOW + 60_000);
  });

  it("never touches a stranger's machine of the same name", () => {
    const stranger = aMachine(anIntent(), { instanceId: 'i-x', installation: 'other', uid: 'u' });
    const plan = planOf(
      converged({ proxy: deleting, record: aRecord({ deleting: true }), fleet: seen(stranger) }),
    );
    expect(kinds(plan)).toEqual(['writeRecord', 'removeFinalizer']);
  });

  it('deletes the recorded machine although its labels were edited away', () => {
    const { installation: _i, uid: _u, hash: _h, ...bare } = aMachine(anIntent());
    const plan = planOf(
      converged({ proxy: deleting, record: aRecord({ deleting: true }), fleet: seen(bare) }),
    );
    expect(kinds(plan)).toContain('deleteMachine');
  });

  it('of an External Proxy drains, and then lets it go', () => {
    const begun = planOf(
      external({ proxy: { ...deleting, desired: external().proxy?.desired ?? deleting.desired } }),
    );
    expect(writtenBy(begun)?.draining).toHaveLength(1);
  });
});
