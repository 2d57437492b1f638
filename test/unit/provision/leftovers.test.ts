import { describe, expect, it } from 'vitest';

import type { Fleet } from '../../../functions/provision/plan.ts';
import type { Leftover } from '#shared/domain/machine.ts';
import type { MachineIntent } from '#shared/domain/record.ts';

import {
  NOW,
  UID,
  ZONE,
  aMachine,
  aPublication,
  aRecord,
  anIntent,
  both,
  converged,
  facts,
  newIntent,
  oldIntent,
  seen,
} from './builders.ts';
import { conditionOf, kinds, planOf, stepOf, writtenBy } from './plans.ts';

const aDisk = (intent: MachineIntent, change: Partial<Leftover> = {}): Leftover => ({
  name: intent.name,
  zone: ZONE,
  id: 'd-1',
  installation: 'prod',
  uid: UID,
  ...change,
});
const leaving = (intent: MachineIntent, change: Partial<Leftover> = {}): Fleet => ({
  kind: 'seen',
  machines: { [intent.name]: [{ zone: ZONE, kind: 'leftover', leftover: aDisk(intent, change) }] },
});

const deleted = (change: Parameters<typeof converged>[0] = {}) =>
  converged({
    proxy: facts({ deleting: true }),
    record: aRecord({ deleting: true }),
    fleet: leaving(anIntent()),
    ...change,
  });

describe('a boot disk that outlived its machine', () => {
  it('is deleted before a deleted Proxy goes', () => {
    const plan = planOf(deleted());
    expect(stepOf(plan, 'deleteLeftover')?.leftover).toEqual(aDisk(anIntent()));
    expect(kinds(plan)).not.toContain('removeFinalizer');
  });

  it('is told to go once, and again only when it is still there long after', () => {
    const watched = planOf(deleted({ deletesSent: { 'd-1': NOW - 1_000 } }));
    expect(kinds(watched)).not.toContain('deleteLeftover');
    expect(watched.next.pauseMs).toBe(3_000);
    expect(conditionOf(watched, 'Provisioned')?.reason).toBe('Deleting');
    expect(kinds(planOf(deleted({ deletesSent: { 'd-1': NOW - 700_000 } })))).toContain('deleteLeftover');
  });

  it('holds up the end of its Proxy, and says why, while the provider refuses', () => {
    const refused = {
      kind: 'delete',
      machine: anIntent().name,
      zone: ZONE,
      behaviour: 'Unauthorised',
      code: 'forbidden',
      message: "Required 'compute.disks.delete' permission",
    } as const;
    const plan = planOf(deleted({ refusals: [refused] }));
    expect(kinds(plan)).not.toContain('removeFinalizer');
    expect(kinds(plan)).not.toContain('deleteLeftover');
    expect(conditionOf(plan, 'Provisioned')).toMatchObject({ reason: 'ProviderError' });
    expect(conditionOf(plan, 'Provisioned')?.message).toContain('compute.disks.delete');
    expect([plan.next.again, plan.next.pauseMs]).toEqual([undefined, undefined]);
    expect(writtenBy(plan)?.wakeAt).toBeGreaterThan(NOW + 60_000);
  });

  it.each([
    ['another installation', { installation: 'other' }],
    ['another Proxy', { uid: 'ffffffff-ffff-4fff-8fff-ffffffffffff' }],
  ])('is left alone when it belongs to %s, and holds up nothing', (_, change) => {
    const plan = planOf(deleted({ fleet: leaving(anIntent(), change) }));
    expect(kinds(plan)).not.toContain('deleteLeftover');
    expect(kinds(plan)).toContain('removeFinalizer');
  });

  it('is left alone when nobody labelled it', () => {
    const { installation: _i, uid: _u, ...bare } = aDisk(anIntent());
    const fleet: Fleet = {
      kind: 'seen',
      machines: { [anIntent().name]: [{ zone: ZONE, kind: 'leftover', leftover: bare }] },
    };
    expect(kinds(planOf(deleted({ fleet })))).not.toContain('deleteLeftover');
  });

  it('is left alone while the machine may still appear: the call that makes both may be under way', () => {
    const { instanceId: _never, ...asked } = anIntent({ askedAt: NOW - 10_000 });
    const operation = { zone: ZONE, name: 'op', startedAt: NOW - 10_000 };
    for (const intent of [asked, anIntent({ operation })]) {
      const record = aRecord({ deleting: true, machines: [intent] });
      const plan = planOf(deleted({ record, fleet: leaving(intent) }));
      expect(kinds(plan)).not.toContain('deleteLeftover');
      expect(kinds(plan)).not.toContain('removeFinalizer');
    }
  });

  it('of a machine that vanished waits for nobody: the next one is intended at once, and the disk goes beside it', () => {
    const lost = planOf(converged({ record: aRecord(), fleet: leaving(anIntent()) }));
    expect(lost.because).toBe('machineVanished');
    const record = writtenBy(lost);
    expect(record?.machines.map(({ incarnation }) => incarnation)).toEqual([1, 2]);
    const next = planOf(
      converged({ ...(record ? { record } : {}), fleet: leaving(anIntent()), refusals: [] }),
    );
    expect(kinds(next)).toContain('deleteLeftover');
    expect(kinds(next)).toContain('createMachine');
  });

  it('of a replaced machine goes while the new one serves', () => {
    const record = aRecord({
      machines: [oldIntent(), newIntent()],
      serving: aPublication(newIntent()),
    });
    const fleet = both(leaving(oldIntent()), seen(aMachine(newIntent())));
    const plan = planOf(converged({ record, fleet }));
    expect(kinds(plan)).toContain('deleteLeftover');
    expect(conditionOf(plan, 'Provisioned')?.status ?? 'True').toBe('True');
  });
});
