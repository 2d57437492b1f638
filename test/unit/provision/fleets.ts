/** Any machines of a gcp Proxy: as its record knows them, and as its provider shows them. */

import { constant, constantFrom, oneof, option, record, type Arbitrary } from 'fast-check';

import type { Fleet, Sighting } from '../../../functions/provision/plan.ts';
import type { Machine } from '#shared/domain/machine.ts';
import type { MachineIntent } from '#shared/domain/record.ts';

import { NOW, UID, aMachine, newIntent, oldIntent } from './builders.ts';

export const OTHER = { namespace: 'crawlers', name: 'other', uid: 'ffffffff-ffff-4fff-8fff-ffffffffffff' };

export const INTENTS = [oldIntent(), newIntent()] as const;

const { instanceId: _never, ...unseen } = newIntent();
const intent = (base: MachineIntent): Arbitrary<MachineIntent> =>
  oneof(
    constant(base),
    constant({ ...base, deleteRequestedAt: NOW - 60_000 }),
    constant({ ...base, yielded: { host: '203.0.113.7', at: NOW - 300_000 } }),
    constant({ ...base, operation: { zone: 'europe-west1-b', name: 'op', startedAt: NOW - 60_000 } }),
  );

/** What a record says of its machines. */
export const machines: Arbitrary<readonly MachineIntent[]> = oneof(
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

/** What the provider shows. */
export const fleet: Arbitrary<Fleet> = oneof(
  { weight: 1, arbitrary: constant<Fleet>({ kind: 'notConfigured' }) },
  {
    weight: 9,
    arbitrary: record({ a: sighting(INTENTS[0]), b: sighting(INTENTS[1]) }).map(({ a, b }) => fleetOf(a, b)),
  },
);
