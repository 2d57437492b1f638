/** Observations to begin from: a converged gcp Proxy and a converged External one. Each test changes what it is about. */

import type { Fleet, Inputs, Observation, ProxyFacts, Sighting } from '../../../functions/provision/plan.ts';
import type { Desired } from '#shared/domain/desired.ts';
import type { Machine } from '#shared/domain/machine.ts';
import { machineName } from '#shared/domain/names.ts';
import { DEFAULT_HEALTH_CHECK } from '#shared/domain/proxy.ts';
import type { MachineIntent, ProxyRecord, Publication } from '#shared/domain/record.ts';
import type { VerdictState } from '#shared/domain/verdict.ts';

export const NOW = Date.parse('2026-11-30T12:00:00Z');
export const UID = '12345678-1234-4123-8123-123456789abc';
export const REF = { namespace: 'crawlers', name: 'p1', uid: UID };
export const HASH = 'aaaaaaaa11111111';
export const OLD_HASH = 'bbbbbbbb22222222';
export const ZONES = ['europe-west1-b', 'europe-west1-c'];
export const ZONE = 'europe-west1-b';

export const nameOf = (hash: string, incarnation: number): string =>
  machineName('prod', UID, hash, incarnation);

export const gcpDesired = (change: Partial<Desired> = {}): Desired => ({
  provider: 'gcp',
  labels: { pool: 'retail' },
  maxLeases: 5,
  cordoned: false,
  drainTimeoutSeconds: 300,
  healthCheck: DEFAULT_HEALTH_CHECK,
  strategy: 'RollingUpdate',
  zones: ZONES,
  ownExit: true,
  machine: {
    port: 3128,
    revision: '',
    gcp: {
      machineType: 'e2-micro',
      image: 'projects/p/global/images/family/ubuntu',
      subnetwork: 'default',
      externalIP: 'Ephemeral',
      provisioningModel: 'Standard',
    },
  },
  ...change,
});

const { machine: _machine, ...withoutMachine } = gcpDesired();
export const externalDesired = (host = 'proxy.example.net'): Desired => ({
  ...withoutMachine,
  provider: 'External',
  zones: [],
  ownExit: false,
  endpoint: { host, port: 3128, scheme: 'http' },
});

export const spot = (desired: Desired): Desired => {
  const { machine } = desired;
  if (!machine?.gcp) throw new Error('not a gcp Proxy');
  return { ...desired, machine: { ...machine, gcp: { ...machine.gcp, provisioningModel: 'Spot' } } };
};

export const facts = (change: Partial<ProxyFacts> = {}): ProxyFacts => ({
  generation: 3,
  labelsHash: 'l1',
  deleting: false,
  hasFinalizer: true,
  status: { installation: 'prod' },
  desired: gcpDesired(),
  ...change,
});

export const anIntent = (change: Partial<MachineIntent> = {}): MachineIntent => ({
  name: nameOf(HASH, 1),
  hash: HASH,
  incarnation: 1,
  zones: [ZONE],
  instanceId: 'i-1',
  askedAt: NOW - 3_600_000,
  ...change,
});

export const oldIntent = (change: Partial<MachineIntent> = {}): MachineIntent =>
  anIntent({ name: nameOf(OLD_HASH, 1), hash: OLD_HASH, instanceId: 'i-old', ...change });

/** The second machine of a Proxy whose first is `oldIntent()`. */
export const newIntent = (change: Partial<MachineIntent> = {}): MachineIntent =>
  anIntent({ name: nameOf(HASH, 2), incarnation: 2, instanceId: 'i-2', ...change });

export const aMachine = (intent: MachineIntent, change: Partial<Machine> = {}): Machine => ({
  name: intent.name,
  zone: intent.zones[0] ?? '',
  instanceId: intent.instanceId ?? 'i-unknown',
  providerID: `gce://project/${intent.zones[0] ?? ''}/${intent.name}`,
  state: 'running',
  address: '203.0.113.7',
  installation: 'prod',
  uid: UID,
  hash: intent.hash,
  ...change,
});

export const aPublication = (
  intent: MachineIntent,
  state: VerdictState = 'Healthy',
  change: Partial<Publication> = {},
): Publication => ({
  endpoint: {
    id: `e-${intent.incarnation}-${intent.hash.slice(0, 2)}`,
    host: '203.0.113.7',
    port: 3128,
    scheme: 'http',
    instanceId: intent.instanceId ?? '',
    credentialsVersion: '',
  },
  verdict: { state, since: NOW - 60_000, checkedAt: NOW - 60_000 },
  publishedAt: NOW - 60_000,
  machine: intent.name,
  zone: intent.zones[0] ?? '',
  providerID: `gce://project/${ZONE}/${intent.name}`,
  ownExit: true,
  ...change,
});

export const aRecord = ({ machines = [anIntent()], ...change }: Partial<ProxyRecord> = {}): ProxyRecord => ({
  ref: REF,
  installation: 'prod',
  provider: 'gcp',
  generation: 3,
  labels: { pool: 'retail' },
  maxLeases: 5,
  cordoned: false,
  deleting: false,
  drainTimeoutSeconds: 300,
  healthCheck: DEFAULT_HEALTH_CHECK,
  draining: [],
  machines,
  incarnation: Math.max(0, ...machines.map(({ incarnation }) => incarnation)),
  gone: false,
  ...change,
});

export const inputs = (change: Partial<Extract<Inputs, { kind: 'resolved' }>> = {}): Inputs => ({
  kind: 'resolved',
  hash: HASH,
  credentialsVersion: '',
  secretVersions: {},
  ...change,
});

export const seen = (...machines: readonly Machine[]): Fleet => ({
  kind: 'seen',
  machines: Object.fromEntries(
    machines.map((machine): [string, Sighting[]] => [
      machine.name,
      [{ zone: machine.zone, kind: 'machine', machine }],
    ]),
  ),
});

export const absent = (
  intent: MachineIntent,
  kind: Exclude<Sighting['kind'], 'machine' | 'leftover'> = 'absentTwice',
): Extract<Fleet, { kind: 'seen' }> => ({
  kind: 'seen',
  machines: { [intent.name]: intent.zones.map((zone) => ({ zone, kind })) },
});

/** A zone that the provider does not answer for, with what it said instead. */
export const unanswered = (intent: MachineIntent, message: string, transient: boolean): Fleet => ({
  ...absent(intent, 'unseen'),
  trouble: { transient, message },
});

export const both = (a: Fleet, b: Fleet): Fleet =>
  a.kind === 'seen' && b.kind === 'seen' ? { kind: 'seen', machines: { ...a.machines, ...b.machines } } : a;

const quiet = {
  ref: REF,
  installation: 'prod',
  allowPrivateEndpoints: false,
  pending: [],
  ended: [],
  refusals: [],
  deletesSent: {},
  leases: {},
  freshId: 'fresh',
  jitter: 0,
} as const;

/** A gcp Proxy whose machine runs and serves. */
export const converged = (change: Partial<Observation> = {}): Observation => ({
  ...quiet,
  proxy: facts(),
  record: aRecord({ serving: aPublication(anIntent()) }),
  inputs: inputs(),
  fleet: seen(aMachine(anIntent())),
  ...change,
});

/** A Proxy that was just applied; nothing has been done for it but the finalizer. */
export const fresh = (change: Partial<Observation> = {}): Observation => {
  const { record: _none, ...rest } = converged({ fleet: { kind: 'seen', machines: {} } });
  return { ...rest, ...change };
};

/** An External Proxy, published and healthy. */
export const external = (change: Partial<Observation> = {}): Observation => {
  const { machine: _m, zone: _z, providerID: _p, ownExit: _o, ...plain } = aPublication(anIntent());
  const serving: Publication = {
    ...plain,
    endpoint: { ...plain.endpoint, id: 'e-ext', host: 'proxy.example.net', instanceId: '' },
  };
  return {
    ...quiet,
    proxy: facts({ desired: externalDesired() }),
    record: aRecord({ provider: 'External', machines: [], incarnation: 0, serving }),
    inputs: inputs({ hash: '' }),
    fleet: { kind: 'seen', machines: {} },
    ...change,
  };
};

/** A Proxy whose spec was edited and whose turn has come: the old machine serves. `more` are further machines. */
export const edited = (
  record: Partial<ProxyRecord> = {},
  change: Partial<Observation> = {},
  more: readonly Machine[] = [],
): Observation =>
  converged({
    record: aRecord({
      machines: [oldIntent()],
      serving: aPublication(oldIntent()),
      generation: 2,
      replacement: { at: NOW - 60_000, granted: true },
      ...record,
    }),
    fleet: seen(aMachine(oldIntent()), ...more),
    ...change,
  });
