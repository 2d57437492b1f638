import { describe, expect, it } from 'vitest';

import type { Machine, MachineState } from '#shared/domain/machine.ts';
import type { Observation } from '../../../functions/provision/plan.ts';

import { aMachine, aPublication, aRecord, anIntent, converged, facts, gcpDesired, seen } from './builders.ts';
import { conditionOf, kinds, planOf, writtenBy } from './plans.ts';

const intent = anIntent({ zones: ['crawlers'] });

/** A converged Proxy with a Pod; `machine` is how the Pod shows itself now. */
const withPod = (machine: Partial<Machine>, served: boolean): Observation => {
  const { gcp: _gcp, ...template } = { port: 3128, revision: '', ...gcpDesired().machine };
  const { zone: _zone, ...publication } = aPublication(intent);
  return converged({
    proxy: facts({
      desired: {
        ...gcpDesired(),
        provider: 'kubernetes',
        zones: ['crawlers'],
        ownExit: false,
        machine: { ...template, kubernetes: { image: 'registry.example.com/squid:1' } },
      },
    }),
    record: aRecord({
      provider: 'kubernetes',
      machines: [intent],
      ...(served ? { serving: publication } : {}),
    }),
    fleet: seen(aMachine(intent, { zone: 'crawlers', ...machine })),
  });
};

describe('a Pod', () => {
  it('is published without a zone: its namespace is none', () => {
    const plan = planOf(withPod({}, false));
    expect(writtenBy(plan)?.serving?.endpoint.host).toBe('203.0.113.7');
    expect(writtenBy(plan)?.serving).not.toHaveProperty('zone');
    expect(plan.status).not.toHaveProperty('zone');
  });

  it.each<MachineState>(['stopping', 'failed', 'repairing', 'creating', 'stopped'])(
    'W3, rows 61 to 63: is withdrawn at once when it is %s',
    (state) => {
      const plan = planOf(withPod({ state, address: '203.0.113.7' }, true));
      expect(plan.because).toBe('machineDoesNotAnswerThere');
      expect(writtenBy(plan)?.serving).toBeUndefined();
    },
  );

  it('row 63: is replaced when it is being deleted, and neither deleted again nor waited for', () => {
    const plan = planOf(withPod({ state: 'stopping' }, false));
    expect(plan.because).toBe('isTerminating');
    expect(kinds(plan)).not.toContain('deleteMachine');
    expect(writtenBy(plan)?.machines.map(({ incarnation }) => incarnation)).toEqual([1, 2]);
    expect(plan.next).toMatchObject({ again: true });
  });

  it('that has lost its readiness is kept, and the condition says why', () => {
    const plan = planOf(withPod({ state: 'repairing', detail: 'ContainersNotReady' }, false));
    expect(plan.because).toBe('isChanging');
    expect(conditionOf(plan, 'Provisioned')?.message).toContain('ContainersNotReady');
    expect(writtenBy(plan)?.machines ?? [intent]).toHaveLength(1);
  });

  it('whose node does not answer keeps what it serves: nothing is known', () => {
    expect(planOf(withPod({ state: 'unknown' }, true)).because).toBe('isChanging');
  });
});
