import { randomInt } from 'node:crypto';

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { decide } from '../../../functions/gc/decide.ts';
import {
  foundKey,
  identityOf,
  isMachine,
  type Found,
  type Identity,
  type Observation,
} from '../../../functions/gc/observation.ts';
import type { Leftover, Machine, MachineState } from '#shared/domain/machine.ts';
import { machineName } from '#shared/domain/names.ts';
import {
  INSTALLATION,
  LIMITS,
  MINUTE,
  NOW,
  aMachine,
  aProxy,
  aRecord,
  aTombstone,
  anObservation,
  leftBehind,
  listed,
  observedRecord,
  uidOf,
  without,
} from './builders.ts';

const ZONES = ['zone-a', 'zone-b'] as const;
const small = fc.integer({ min: 1, max: 6 });
const offset = fc.integer({ min: -40, max: 10 }).map((minutes) => NOW + minutes * MINUTE);

interface Traits {
  readonly n: number;
  readonly serial: number;
  readonly zone: string;
  readonly state: MachineState;
  readonly foreignName: boolean;
  readonly installation: string | undefined;
  readonly uid: string | undefined;
  readonly createdAt: number | undefined;
}

const aMachineWith = ({ n, serial, zone, state, foreignName, ...labels }: Traits): Machine => ({
  ...without(aMachine(n, { zone, state, instanceId: `i${serial}` }), 'installation', 'uid', 'createdAt'),
  ...(foreignName ? { name: `other-${n}` } : {}),
  ...(labels.installation === undefined ? {} : { installation: labels.installation }),
  ...(labels.uid === undefined ? {} : { uid: labels.uid }),
  ...(labels.createdAt === undefined ? {} : { createdAt: labels.createdAt }),
});

const machine: fc.Arbitrary<Machine> = fc
  .record({
    n: small,
    serial: fc.nat({ max: 12 }),
    zone: fc.constantFrom(...ZONES),
    installation: fc.constantFrom(INSTALLATION, INSTALLATION, INSTALLATION, 'stage', undefined),
    uid: fc.constantFrom('own', 'own', 'own', 'other', 'none', 'garbage'),
    foreignName: fc.nat({ max: 9 }).map((dice) => dice === 0),
    createdAt: fc.option(offset, { nil: undefined, freq: 9 }),
    state: fc.constantFrom<MachineState[]>('running', 'running', 'stopped', 'stopping', 'unknown'),
  })
  .map((given) => {
    const uids = { own: uidOf(given.n), other: uidOf(given.n + 100), none: undefined, garbage: 'x' };
    return aMachineWith({ ...given, uid: uids[given.uid] });
  });

/** Of a machine that may be listed beside it. */
const leftover: fc.Arbitrary<Leftover> = machine.map((given) => ({
  ...without(given, 'instanceId', 'providerID', 'state', 'address', 'hash'),
  id: given.instanceId,
}));

const kind = fc.constantFrom('machine', 'leftover');
const rarely = fc.nat({ max: 7 }).map((dice) => dice === 0);

const observation: fc.Arbitrary<Observation> = fc
  .record({
    machines: fc.array(machine, { minLength: 3, maxLength: 12 }),
    leftovers: fc.array(leftover, { minLength: 3, maxLength: 12 }),
    unknownZones: fc.subarray([...ZONES], { maxLength: 1 }),
    partial: rarely,
    unknownToo: fc.subarray([...ZONES], { maxLength: 1 }),
    partialToo: rarely,
    proxies: fc.uniqueArray(small, { maxLength: 3 }),
    blind: rarely,
    records: fc.uniqueArray(small, { maxLength: 3 }),
    tombs: fc.boolean(),
    unreadable: fc.uniqueArray(small, { maxLength: 1 }),
    seen: fc.array(fc.tuple(fc.nat({ max: 12 }), offset, kind), { minLength: 16, maxLength: 80 }),
  })
  .map((given) =>
    anObservation({
      listings: [listed(given.machines, given)],
      leftovers: [leftBehind(given.leftovers, { unknownZones: given.unknownToo, partial: given.partialToo })],
      proxies: given.blind
        ? { kind: 'unknown', message: 'blind' }
        : { kind: 'listed', proxies: given.proxies.map((n) => aProxy(n)) },
      records: given.records.map((n) => observedRecord(given.tombs ? aTombstone(n) : aRecord(n))),
      unreadable: given.unreadable.map(uidOf),
      sightings: new Map(given.seen.map(([serial, at, what]) => [`${what}:gcp:i${serial}`, at])),
    }),
  );

const nameOf = (uid: string): string => machineName(INSTALLATION, uid, 'abcdef0123', 1);

type Forbidden = (it: Identity, given: Observation, found: Found) => boolean;

const FORBIDDEN: Readonly<Record<string, Forbidden>> = {
  'is foreign (B2)': ({ installation, name }) =>
    installation !== INSTALLATION || !name.startsWith(`${INSTALLATION}-`),
  'has no UID (K6)': ({ uid }) => uid === undefined || uid === 'x',
  'is young or of unknown age (K6)': ({ createdAt }) =>
    createdAt === undefined || NOW - createdAt < LIMITS.minAgeMs,
  'was not seen before under its own id, long enough ago (row 81)': (_, { sightings }, found) => {
    const at = sightings.get(foundKey(found));
    return at === undefined || NOW - at < LIMITS.sightingGapMs;
  },
  'has, or may have, a Proxy by its label or by its name (K6)': ({ uid, name }, { proxies }) =>
    proxies.kind === 'unknown' ||
    proxies.proxies.some(({ ref }) => uid === ref.uid || name === nameOf(ref.uid)),
  'has a live record': ({ uid, name }, { records }) =>
    records.some(({ record: { gone, ref } }) => !gone && (uid === ref.uid || name === nameOf(ref.uid))),
  'has a record that cannot be read': ({ uid, name }, { unreadable }) =>
    unreadable.some((broken) => uid === broken || name === nameOf(broken)),
  'is in a zone or list that is not complete (rows 47, 48)': ({ zone }, { listings }) =>
    listings.some(
      (listing) =>
        listing.kind === 'unknown' || listing.fleet.partial || listing.fleet.unknownZones.includes(zone),
    ),
  'is stopping already (W1)': (_, __, found) => isMachine(found) && found.machine.state === 'stopping',
  'was left behind in a zone or list that is not complete (rows 47, 48)': (it, { leftovers = [] }) =>
    it.kind === 'leftover' &&
    leftovers.some((list) => list.kind === 'unknown' || list.partial || list.unknownZones.includes(it.zone)),
  'was left behind by a machine whose name is listed': ({ kind: what, zone, name }, { listings }) =>
    what === 'leftover' &&
    listings.some(
      (listing) =>
        listing.kind === 'listed' &&
        listing.fleet.machines.some((other) => other.name === name && other.zone === zone),
    ),
};

const shownIn = ({ listings, leftovers = [] }: Observation): readonly Found[] => [
  ...listings.flatMap((listing) =>
    listing.kind === 'listed'
      ? listing.fleet.machines.map((one): Found => ({ provider: 'gcp', machine: one }))
      : [],
  ),
  ...leftovers.flatMap((list) =>
    list.kind === 'listed' ? list.leftovers.map((one): Found => ({ provider: 'gcp', leftover: one })) : [],
  ),
];

const RUNS = 2000;
const seed = Number(process.env['FC_SEED'] ?? randomInt(2 ** 31));

describe(`whatever gc has read (seed ${seed}), nothing is ever condemned that`, () => {
  const observations = fc.sample(observation, { numRuns: RUNS, seed });
  const all = observations.flatMap((given) => decide(given).deletions.map((found) => ({ found, given })));

  test.each(Object.entries(FORBIDDEN))('%s', (_, forbidden) => {
    expect(all.filter(({ found, given }) => forbidden(identityOf(found), given, found))).toEqual([]);
  });

  test('(and among what was generated there is much to delete of both kinds, and all that is forbidden)', () => {
    const machines = all.filter(({ found }) => isMachine(found));
    expect(machines.length).toBeGreaterThan(50);
    expect(all.length - machines.length).toBeGreaterThan(50);
    for (const forbidden of Object.values(FORBIDDEN))
      expect(
        observations.some((given) =>
          shownIn(given).some((found) => forbidden(identityOf(found), given, found)),
        ),
      ).toBe(true);
  });
});
