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

import type { Inputs, Observation, Refusal, Turn } from '../../../functions/provision/plan.ts';
import type { Desired } from '#shared/domain/desired.ts';
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
import { INTENTS, OTHER, fleet, machines } from './fleets.ts';

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
