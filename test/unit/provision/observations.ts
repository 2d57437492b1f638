/** Any observation of a gcp Proxy: every state of it, of its record, its machines, its Secrets and its provider. */

import {
  boolean,
  constant,
  constantFrom,
  integer,
  oneof,
  option,
  record,
  subarray,
  type Arbitrary,
} from 'fast-check';

import type {
  Fleet,
  Inputs,
  Observation,
  Refusal,
  Sighting,
  Turn,
} from '../../../functions/provision/plan.ts';
import type { Desired } from '#shared/domain/desired.ts';
import type { Machine } from '#shared/domain/machine.ts';
import type {
  DrainingPublication,
  MachineIntent,
  ProxyRecord,
  Publication,
  PublishedPlace,
} from '#shared/domain/record.ts';
import type { VerdictState } from '#shared/domain/verdict.ts';

import {
  NOW,
  UID,
  aMachine,
  aPublication,
  aRecord,
  converged,
  facts,
  gcpDesired,
  inputs,
  newIntent,
  oldIntent,
  spot,
} from './builders.ts';

const OTHER = { namespace: 'crawlers', name: 'other', uid: 'ffffffff-ffff-4fff-8fff-ffffffffffff' };

const INTENTS = [oldIntent(), newIntent()] as const;

const { instanceId: _never, ...unseen } = newIntent();
const intent = (base: MachineIntent): Arbitrary<MachineIntent> =>
  oneof(
    constant(base),
    constant({ ...base, deleteRequestedAt: NOW - 60_000 }),
    constant({ ...base, yielded: { host: '203.0.113.7', at: NOW - 300_000 } }),
    constant({ ...base, operation: { zone: 'europe-west1-b', name: 'op', startedAt: NOW - 60_000 } }),
  );

const machines: Arbitrary<readonly MachineIntent[]> = oneof(
  constant([]),
  intent(oldIntent()).map((each) => [each]),
  intent(newIntent()).map((each) => [each]),
  constant([unseen]),
  constant([oldIntent(), unseen]),
  record({ a: intent(oldIntent()), b: intent(newIntent()) }).map(({ a, b }) => [a, b]),
);

const states = [
  'creating',
  'running',
  'stopping',
  'stopped',
  'suspended',
  'repairing',
  'failed',
  'unknown',
] as const satisfies readonly Machine['state'][];

interface Drawn {
  readonly state: Machine['state'];
  readonly address?: string | undefined;
  readonly installation: string;
  readonly uid: string;
  readonly instanceId: string;
}

const withAddress =
  (base: MachineIntent) =>
  ({ address, ...drawn }: Drawn): Machine => {
    const { address: _usual, ...bare } = aMachine(base);
    const machine: Machine = Object.assign(bare, drawn);
    return address === undefined ? machine : Object.assign(machine, { address });
  };

const machine = (base: MachineIntent): Arbitrary<Machine> =>
  record({
    state: constantFrom(...states),
    address: option(constantFrom('203.0.113.7', '203.0.113.9'), { nil: undefined }),
    installation: constantFrom('prod', 'other'),
    uid: constantFrom(UID, OTHER.uid),
    instanceId: constantFrom(base.instanceId ?? 'i-new', 'i-other'),
  }).map(withAddress(base));

const sighting = (base: MachineIntent): Arbitrary<Sighting> =>
  oneof(
    machine(base).map((each): Sighting => ({ zone: each.zone, kind: 'machine', machine: each })),
    constantFrom('prod', 'other').map((installation): Sighting => ({
      zone: 'europe-west1-b',
      kind: 'leftover',
      leftover: { name: base.name, zone: 'europe-west1-b', id: `d-${base.name}`, installation, uid: UID },
    })),
    constantFrom<Sighting>(
      { zone: 'europe-west1-b', kind: 'untouched' },
      { zone: 'europe-west1-b', kind: 'inFlight' },
      { zone: 'europe-west1-b', kind: 'absentOnce' },
      { zone: 'europe-west1-b', kind: 'absentTwice' },
      { zone: 'europe-west1-b', kind: 'unseen' },
    ),
  );

const trouble = { transient: true, message: '503' };
const fleetOf = (a: Sighting, b: Sighting): Fleet => {
  const machinesThere = { [INTENTS[0].name]: [a], [INTENTS[1].name]: [b] };
  const isWhole = a.kind !== 'unseen' && b.kind !== 'unseen';
  return isWhole
    ? { kind: 'seen', machines: machinesThere }
    : { kind: 'seen', machines: machinesThere, trouble };
};

const fleet: Arbitrary<Fleet> = oneof(
  { weight: 1, arbitrary: constant<Fleet>({ kind: 'notConfigured' }) },
  {
    weight: 9,
    arbitrary: record({ a: sighting(INTENTS[0]), b: sighting(INTENTS[1]) }).map(({ a, b }) => fleetOf(a, b)),
  },
);

const verdicts = ['Healthy', 'Unhealthy', 'Unknown'] as const;
const parts = {
  serving: option(constantFrom(...INTENTS), { nil: undefined }),
  candidate: option(constantFrom(...INTENTS), { nil: undefined }),
  draining: subarray([...INTENTS]),
  replacement: constantFrom(
    undefined,
    { at: NOW - 60_000, granted: false },
    { at: NOW - 60_000, granted: true },
    { at: NOW - 60_000, granted: false, hash: newIntent().hash },
    { at: NOW - 60_000, granted: false, hash: newIntent().hash, held: true },
    { at: NOW - 60_000, granted: true, hash: newIntent().hash, stuck: true },
  ),
  verdict: constantFrom(...verdicts),
};

const published = (base: MachineIntent | undefined, state: VerdictState) => base && aPublication(base, state);

const recordOf = (
  { machines: known, deleting }: Pick<ProxyRecord, 'machines' | 'deleting'>,
  serving: Publication | undefined,
  candidate: Publication | undefined,
  draining: readonly DrainingPublication[],
  replacement: ProxyRecord['replacement'],
): ProxyRecord => {
  const place = replacement ? { replacement } : {};
  const bare = aRecord({ machines: known, deleting, draining, ...place });
  const served = serving ? { ...bare, serving } : bare;
  return candidate ? { ...served, candidate } : served;
};

const stored: Arbitrary<ProxyRecord> = record({ ...parts, machines, deleting: boolean() }).map((drawn) =>
  recordOf(
    drawn,
    published(drawn.serving, drawn.verdict),
    published(drawn.candidate, drawn.verdict),
    drawn.draining.map((each) => Object.assign(aPublication(each), { until: NOW + 60_000 })),
    drawn.replacement,
  ),
);

const someInputs: Arbitrary<Inputs> = oneof(
  constant(inputs()),
  constant(inputs({ hash: oldIntent().hash })),
  constant(inputs({ hash: 'dddddddd44444444', credentialsVersion: 'v' })),
  constant<Inputs>({
    kind: 'trouble',
    reason: 'SecretMissing',
    message: 'm',
    judged: true,
    secretVersions: {},
  }),
);

const refusal: Arbitrary<Refusal> = record({
  kind: constantFrom('create' as const, 'delete' as const, 'start' as const),
  machine: constantFrom(INTENTS[0].name, INTENTS[1].name),
  zone: constant('europe-west1-b'),
  behaviour: constantFrom(
    'CapacityUnavailable' as const,
    'QuotaExceeded' as const,
    'InvalidSpec' as const,
    'Conflict' as const,
    'Transient' as const,
    'Unauthorised' as const,
  ),
  code: constant('CODE'),
  message: constant('words'),
});

const desired = oneof(
  constant(gcpDesired()),
  constant(gcpDesired({ strategy: 'Recreate' })),
  constant(spot(gcpDesired())),
);

const rival = record({
  host: constantFrom('203.0.113.7', '203.0.113.9'),
  port: constantFrom(3128, 3129),
  publishedAt: constantFrom(NOW - 120_000, NOW - 60_000, NOW - 1_000),
}).map(({ host, port, publishedAt }): PublishedPlace => ({ ref: OTHER, host, port, publishedAt }));

interface World extends Pick<Observation, 'fleet' | 'refusals'> {
  readonly rivals: readonly PublishedPlace[];
  readonly inputs: Inputs;
  readonly stored?: ProxyRecord | undefined;
  readonly desired: Desired;
  readonly turn: Turn;
  readonly isThere: boolean;
  readonly deleting: boolean;
  readonly hasFinalizer: boolean;
}

const observe = (drawn: World): Observation => {
  const { fleet: machinesThere, inputs: given, refusals, deleting, hasFinalizer } = drawn;
  const { turn, rivals } = drawn;
  const {
    proxy: _p,
    record: _r,
    ...base
  } = converged({
    fleet: machinesThere,
    inputs: given,
    refusals,
    turn,
    rivals,
  });
  const proxy = facts({ deleting, hasFinalizer, desired: drawn.desired });
  const there: Observation = drawn.isThere ? { ...base, proxy } : base;
  return drawn.stored ? { ...there, record: drawn.stored } : there;
};

export const observation: Arbitrary<Observation> = record({
  stored: option(stored, { nil: undefined }),
  fleet,
  inputs: someInputs,
  desired,
  turn: record({
    ahead: integer({ min: 0, max: 3 }),
    stuck: integer({ min: 0, max: 3 }),
    fleet: constant(8),
    percent: constant(25),
  }),
  rivals: oneof(
    constant([]),
    rival.map((each) => [each]),
  ),
  isThere: integer({ min: 0, max: 9 }).map((n) => n > 0),
  deleting: boolean(),
  hasFinalizer: integer({ min: 0, max: 9 }).map((n) => n > 0),
  refusals: oneof(
    constant([]),
    refusal.map((each) => [each]),
  ),
}).map(observe);
