import { describe, expect, it } from 'vitest';

import type { Refusal } from '../../../functions/provision/plan.ts';
import type { Machine } from '#shared/domain/machine.ts';

import {
  HASH,
  NOW,
  ZONE,
  ZONES,
  aMachine,
  aPublication,
  aRecord,
  absent,
  anIntent,
  both,
  converged,
  facts,
  gcpDesired,
  inputs,
  nameOf,
  seen,
  spot,
  unanswered,
} from './builders.ts';
import { conditionOf, kinds, planOf, reasonOf, stepOf, writtenBy } from './plans.ts';

const refusal = (change: Partial<Refusal> = {}): Refusal => ({
  kind: 'create',
  machine: nameOf(HASH, 1),
  zone: ZONE,
  behaviour: 'CapacityUnavailable',
  code: 'ZONE_RESOURCE_POOL_EXHAUSTED',
  message: 'No capacity here.',
  ...change,
});

describe('a machine that runs', () => {
  it('is published, probed at once, and ends the pass', () => {
    const plan = planOf(converged({ record: aRecord() }));
    expect(kinds(plan)).toEqual(['writeRecord', 'requestProbe']);
    expect(writtenBy(plan)?.serving).toMatchObject({
      endpoint: { id: 'fresh', host: '203.0.113.7', port: 3128, instanceId: 'i-1' },
      verdict: { state: 'Unknown' },
      ownExit: true,
    });
    expect(plan.next).toEqual({});
    expect(plan.status).toMatchObject({ host: '203.0.113.7', ip: '203.0.113.7', port: 3128, zone: ZONE });
    expect(reasonOf(plan, 'Ready')).toBe('NotHealthy');
  });

  it('has its credentials stored after their id is recorded and before anybody can probe (idea 14)', () => {
    const plan = planOf(converged({ record: aRecord(), inputs: inputs({ credentialsVersion: 'v1' }) }));
    expect(kinds(plan)).toEqual(['writeRecord', 'storeCredentials', 'writeRecord', 'requestProbe']);
    const [announced] = plan.steps;
    expect(announced).toMatchObject({ record: { credentials: ['fresh'] } });
    expect(announced).not.toHaveProperty('record.serving');
    expect(stepOf(plan, 'storeCredentials')?.endpointId).toBe('fresh');
  });

  it('without an address is waited for and not listed (B1, row 78)', () => {
    const { address: _none, ...bare } = aMachine(anIntent());
    const plan = planOf(converged({ record: aRecord(), fleet: seen(bare) }));
    expect(reasonOf(plan, 'Provisioned')).toBe('WaitingForAddress');
    expect(plan.status).not.toHaveProperty('host');
    expect(writtenBy(plan)).not.toHaveProperty('serving');
  });

  it('and serves, healthy, needs nothing: no write, no wake-up (K1)', () => {
    const first = planOf(converged());
    expect(first.steps).toEqual([]);
    const again = planOf(converged({ proxy: facts({ status: first.status ?? {} }) }));
    expect(again).toMatchObject({ steps: [], events: [], next: {} });
    expect(again.status).toBeUndefined();
  });

  it('is asked for a probe again while nobody has judged it', () => {
    const record = aRecord({ serving: aPublication(anIntent(), 'Unknown') });
    const plan = planOf(converged({ record }));
    expect(kinds(plan)).toEqual(['writeRecord', 'requestProbe']);
    expect(writtenBy(plan)?.wakeAt).toBe(NOW + 300_000);
  });

  it('in two zones after a late success keeps the recorded one and loses the other (row 40)', () => {
    const intent = anIntent({ zones: ZONES });
    const twin = aMachine(intent, { zone: 'europe-west1-c', instanceId: 'i-twin' });
    const kept = aMachine(intent);
    const record = aRecord({ machines: [intent], serving: aPublication(intent) });
    const sightings = [kept, twin].map(
      (machine) => ({ zone: machine.zone, kind: 'machine', machine }) as const,
    );
    // Whichever of the two zones is named first.
    for (const order of [sightings, sightings.toReversed()]) {
      const plan = planOf(converged({ record, fleet: { kind: 'seen', machines: { [intent.name]: order } } }));
      const deleted = plan.steps.flatMap((step) => (step.kind === 'deleteMachine' ? [step.machine] : []));
      expect(deleted).toEqual([twin]);
    }
  });

  it('is not held against what was refused before it came', () => {
    const failure = {
      behaviour: 'QuotaExceeded',
      code: 'c',
      message: 'm',
      count: 4,
      retryAt: NOW + 9_000,
    } as const;
    const machines = [anIntent({ failure })];
    const plan = planOf(converged({ record: aRecord({ machines, serving: aPublication(anIntent()) }) }));
    expect(writtenBy(plan)?.machines).toEqual([anIntent()]);
    expect(conditionOf(plan, 'Ready')?.status).toBe('True');
  });
});

describe('what happens in the cloud without us (B1)', () => {
  const lost: readonly (readonly [string, Partial<Machine>])[] = [
    ['stopped (row 45)', { state: 'stopped' }],
    ['is stopping', { state: 'stopping' }],
    ['was suspended', { state: 'suspended' }],
    ['is under repair', { state: 'repairing' }],
    ['is being created', { state: 'creating' }],
    ['failed', { state: 'failed' }],
    ['has another address (row 46)', { address: '203.0.113.99' }],
    ['is another one under its name', { instanceId: 'i-other' }],
  ];
  it.each(lost)('withdraws the endpoint of a machine that %s, and only that, at once', (_what, change) => {
    const plan = planOf(converged({ fleet: seen(aMachine(anIntent(), change)) }));
    expect(kinds(plan)).toEqual(['writeRecord']);
    expect(writtenBy(plan)).not.toHaveProperty('serving');
    expect(plan.next).toEqual({ again: true });
  });

  it('withdraws the endpoint of a machine that is not there', () => {
    const plan = planOf(converged({ fleet: absent(anIntent(), 'absentOnce') }));
    expect(writtenBy(plan)).not.toHaveProperty('serving');
  });

  it('concludes nothing from a state that nobody knows', () => {
    const plan = planOf(converged({ fleet: seen(aMachine(anIntent(), { state: 'unknown' })) }));
    expect(kinds(plan).filter((kind) => kind !== 'writeRecord')).toEqual([]);
    expect(writtenBy(plan)?.serving ?? converged().record?.serving).toBeDefined();
    expect(plan.next.pauseMs).toBeGreaterThan(0);
  });

  it.each([true, false])(
    'concludes nothing while the provider does not answer (row 47), transient: %s',
    (transient) => {
      const plan = planOf(converged({ fleet: unanswered(anIntent(), '403: no', transient) }));
      expect(writtenBy(plan)?.serving).toBeDefined();
      expect(plan.next).toEqual(transient ? { retry: true } : {});
      expect(reasonOf(plan, 'Provisioned')).toBe(transient ? undefined : 'ProviderError');
      // An outage is over by itself, what was refused is not: somebody looks again after one or five minutes.
      expect(writtenBy(plan)?.wakeAt).toBe(NOW + (transient ? 60_000 : 300_000));
    },
  );

  it('withdraws a dead endpoint although another zone does not answer', () => {
    const intents = [anIntent(), anIntent({ name: 'other', zones: ['europe-west1-c'] })] as const;
    const plan = planOf(
      converged({
        record: aRecord({ machines: intents, serving: aPublication(intents[0]) }),
        fleet: both(
          seen(aMachine(intents[0], { state: 'stopped' })),
          unanswered(intents[1], '503: no', true),
        ),
      }),
    );
    expect(writtenBy(plan)).not.toHaveProperty('serving');
  });

  it('does not take one "not found" for gone (K3)', () => {
    const plan = planOf(converged({ record: aRecord(), fleet: absent(anIntent(), 'absentOnce') }));
    expect(plan.next.pauseMs).toBe(3_000);
    expect(reasonOf(plan, 'Provisioned')).toBe('MachineGone');
    expect(kinds(plan)).not.toContain('createMachine');
  });

  it('makes another machine under another name when it is proven gone (W4)', () => {
    const plan = planOf(converged({ record: aRecord(), fleet: absent(anIntent()) }));
    expect(writtenBy(plan)?.machines).toMatchObject([{ name: nameOf(HASH, 2), incarnation: 2 }]);
    expect(writtenBy(plan)?.machines[0]).not.toHaveProperty('instanceId');
  });

  it('starts a stopped machine again and says why', () => {
    const stopped = aMachine(anIntent(), { state: 'stopped', detail: 'TERMINATED' });
    const plan = planOf(converged({ record: aRecord(), fleet: seen(stopped) }));
    expect(stepOf(plan, 'startMachine')?.machine).toEqual(stopped);
    const pending = { kind: 'start', machine: stopped.name, operation: { zone: ZONE, name: 'op' } } as const;
    const waiting = planOf(converged({ record: aRecord(), fleet: seen(stopped), pending: [pending] }));
    expect(reasonOf(waiting, 'Provisioned')).toBe('Restarting');
    expect(conditionOf(waiting, 'Provisioned')?.message).toContain('TERMINATED');
    expect(kinds(waiting)).not.toContain('startMachine');
  });

  it('replaces a Spot machine that was taken (row 45)', () => {
    const plan = planOf(
      converged({
        proxy: facts({ desired: spot(gcpDesired()) }),
        record: aRecord(),
        fleet: seen(aMachine(anIntent(), { state: 'stopped' })),
      }),
    );
    expect(plan.because).toBe('spotMachineWasTaken');
    expect(writtenBy(plan)?.machines.map(({ incarnation }) => incarnation)).toEqual([1, 2]);
  });

  it.each(['suspended', 'failed'] as const)('replaces a machine that is %s', (state) => {
    const plan = planOf(converged({ record: aRecord(), fleet: seen(aMachine(anIntent(), { state })) }));
    expect(writtenBy(plan)?.machines).toHaveLength(2);
  });

  it('replaces a machine that cannot be started again', () => {
    const plan = planOf(
      converged({
        record: aRecord(),
        fleet: seen(aMachine(anIntent(), { state: 'stopped' })),
        refusals: [refusal({ kind: 'start' })],
      }),
    );
    expect(writtenBy(plan)?.machines).toHaveLength(2);
  });
});
