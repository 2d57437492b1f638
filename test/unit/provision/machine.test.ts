import { describe, expect, it } from 'vitest';

import type { Machine } from '#shared/domain/machine.ts';
import type { Refusal } from '../../../functions/provision/plan.ts';
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
  conditionOf,
  converged,
  facts,
  fresh,
  gcpDesired,
  inputs,
  kinds,
  nameOf,
  planOf,
  reasonOf,
  seen,
  spot,
  stepOf,
  writtenBy,
} from './builders.ts';

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
    expect(conditionOf(plan, 'Provisioned')).toMatchObject({ reason, message: 'CODE: In its own words.' });
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

  it("leaves a stranger's machine alone, and says so", () => {
    const stranger = aMachine(unseen, { installation: 'other' });
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
    const plan = planOf(
      converged({
        record: aRecord({ machines: [intent], serving: aPublication(intent) }),
        fleet: {
          kind: 'seen',
          machines: {
            [intent.name]: [
              { zone: ZONE, kind: 'machine', machine: kept },
              { zone: 'europe-west1-c', kind: 'machine', machine: twin },
            ],
          },
        },
      }),
    );
    expect(plan.steps.flatMap((step) => (step.kind === 'deleteMachine' ? [step.machine] : []))).toEqual([
      twin,
    ]);
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
      const plan = planOf(converged({ fleet: { kind: 'unseen', transient, message: '403: no' } }));
      expect(writtenBy(plan)?.serving).toBeDefined();
      expect(plan.next).toEqual(transient ? { retry: true } : {});
      expect(reasonOf(plan, 'Provisioned')).toBe(transient ? undefined : 'ProviderError');
    },
  );

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
