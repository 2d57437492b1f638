/** Observations to begin from: one orphan that every rule would let go. Each test changes one thing. */

import type {
  LeftoversOf,
  Limits,
  Observation,
  ObservedRecord,
  ProviderListing,
  ProxySummary,
} from '../../../functions/gc/observation.ts';
import { foundKey, type Found } from '../../../functions/gc/observation.ts';
import { machineName } from '#shared/domain/names.ts';
import type { Leftover, Machine } from '#shared/domain/machine.ts';
import { DEFAULT_HEALTH_CHECK } from '#shared/domain/proxy.ts';
import type { MachineIntent, ProxyRecord, Publication } from '#shared/domain/record.ts';

export const NOW = Date.parse('2026-11-30T12:00:00Z');
export const MINUTE = 60_000;
export const INSTALLATION = 'prod';
export const ZONE = 'europe-west1-b';

export const LIMITS: Limits = {
  minAgeMs: 10 * MINUTE,
  sightingGapMs: 2 * MINUTE,
  maxDeletions: 10,
  maxNudges: 100,
  tombstoneAgeMs: 60 * MINUTE,
};

/** The n-th of a row of UIDs. */
export const uidOf = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

export const aMachine = (n: number, change: Partial<Machine> = {}): Machine => ({
  name: machineName(INSTALLATION, uidOf(n), 'abcdef0123', 1),
  zone: ZONE,
  instanceId: `instance-${n}`,
  providerID: `gce://project/${ZONE}/m${n}`,
  state: 'running',
  address: `203.0.113.${n % 250}`,
  installation: INSTALLATION,
  uid: uidOf(n),
  hash: 'abcdef0123',
  createdAt: NOW - 60 * MINUTE,
  ...change,
});

/** What the n-th machine left behind. */
export const aLeftover = (n: number, change: Partial<Leftover> = {}): Leftover => ({
  name: aMachine(n).name,
  zone: ZONE,
  id: `disk-${n}`,
  installation: INSTALLATION,
  uid: uidOf(n),
  createdAt: NOW - 60 * MINUTE,
  ...change,
});

export const without = <T extends object>(given: T, ...keys: readonly (keyof T)[]): T => {
  const copy = { ...given };
  for (const key of keys) Reflect.deleteProperty(copy, key);
  return copy;
};

export const aProxy = (n: number, change: Partial<ProxySummary> = {}): ProxySummary => ({
  ref: { namespace: 'crawlers', name: `proxy-${n}`, uid: uidOf(n) },
  generation: 1,
  deleting: false,
  covered: true,
  owner: INSTALLATION,
  ...change,
});

export const aPublication = (machine: Machine, change: Partial<Publication> = {}): Publication => ({
  endpoint: {
    id: `endpoint-${machine.instanceId}`,
    host: machine.address ?? '203.0.113.1',
    port: 3128,
    scheme: 'http',
    instanceId: machine.instanceId,
    credentialsVersion: '',
  },
  verdict: { state: 'Healthy', since: NOW - MINUTE, checkedAt: NOW - MINUTE },
  publishedAt: NOW - 30 * MINUTE,
  machine: machine.name,
  zone: machine.zone,
  ...change,
});

const intentOf = (machine: Machine): MachineIntent => ({
  name: machine.name,
  hash: 'abcdef0123',
  incarnation: 1,
  zones: [machine.zone],
  instanceId: machine.instanceId,
});

export const aRecord = (n: number, change: Partial<ProxyRecord> = {}): ProxyRecord => ({
  ref: { namespace: 'crawlers', name: `proxy-${n}`, uid: uidOf(n) },
  installation: INSTALLATION,
  provider: 'gcp',
  generation: 1,
  labels: {},
  maxLeases: 1,
  cordoned: false,
  deleting: false,
  drainTimeoutSeconds: 300,
  healthCheck: DEFAULT_HEALTH_CHECK,
  serving: aPublication(aMachine(n)),
  draining: [],
  machines: [intentOf(aMachine(n))],
  incarnation: 1,
  gone: false,
  ...change,
});

export const aTombstone = (n: number): ProxyRecord => {
  const { serving: _, ...record } = aRecord(n, { gone: true, machines: [] });
  return record;
};

export const observedRecord = (record: ProxyRecord, updatedAt = NOW - 10 * MINUTE): ObservedRecord => ({
  record,
  updatedAt,
  readAt: NOW,
});

export const listed = (
  machines: readonly Machine[],
  change: { readonly unknownZones?: readonly string[]; readonly partial?: boolean } = {},
): ProviderListing => ({
  kind: 'listed',
  provider: 'gcp',
  listedAt: NOW,
  fleet: { machines, unknownZones: [], partial: false, ...change },
});

export const leftBehind = (
  leftovers: readonly Leftover[],
  change: { readonly unknownZones?: readonly string[]; readonly partial?: boolean } = {},
): LeftoversOf => ({
  kind: 'listed',
  provider: 'gcp',
  leftovers,
  unknownZones: [],
  partial: false,
  ...change,
});

/** Nothing to do: no machines, no Proxies, the known cluster. */
export const anObservation = (change: Partial<Observation> = {}): Observation => ({
  installation: INSTALLATION,
  namespaces: ['*'],
  now: NOW,
  limits: LIMITS,
  listings: [listed([])],
  records: [],
  unreadable: [],
  proxies: { kind: 'listed', proxies: [] },
  cluster: { kind: 'known', id: 'cluster-1' },
  sightings: new Map(),
  ...change,
});

const found = (one: Machine | Leftover): Found =>
  'instanceId' in one ? { provider: 'gcp', machine: one } : { provider: 'gcp', leftover: one };

/** Every one of these was seen without a Proxy long enough ago. */
export const seenBefore = (
  those: readonly (Machine | Leftover)[],
  at = NOW - 5 * MINUTE,
): ReadonlyMap<string, number> => new Map(those.map((one) => [foundKey(found(one)), at]));

/** One machine, old, ours, without Proxy or record, and seen before: it may go. */
export const anOrphan = (change: Partial<Observation> = {}, machine: Machine = aMachine(1)): Observation =>
  anObservation({ listings: [listed([machine])], sightings: seenBefore([machine]), ...change });

/** The same with a leftover, while no machine is to be seen. */
export const anAbandoned = (
  change: Partial<Observation> = {},
  leftover: Leftover = aLeftover(1),
): Observation =>
  anObservation({ leftovers: [leftBehind([leftover])], sightings: seenBefore([leftover]), ...change });
