import { randomInt } from 'node:crypto';

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { decide } from '../../../functions/gc/decide.ts';
import { machineKey, type Observation } from '../../../functions/gc/observation.ts';
import type { Machine, MachineState } from '#shared/domain/machine.ts';
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

const observation: fc.Arbitrary<Observation> = fc
  .record({
    machines: fc.array(machine, { minLength: 3, maxLength: 12 }),
    unknownZones: fc.subarray([...ZONES], { maxLength: 1 }),
    partial: fc.nat({ max: 7 }).map((dice) => dice === 0),
    proxies: fc.uniqueArray(small, { maxLength: 3 }),
    blind: fc.nat({ max: 7 }).map((dice) => dice === 0),
    records: fc.uniqueArray(small, { maxLength: 3 }),
    tombs: fc.boolean(),
    unreadable: fc.uniqueArray(small, { maxLength: 1 }),
    seen: fc.array(fc.tuple(fc.nat({ max: 12 }), offset), { minLength: 8, maxLength: 40 }),
  })
  .map((given) =>
    anObservation({
      listings: [listed(given.machines, given)],
      proxies: given.blind
        ? { kind: 'unknown', message: 'blind' }
        : { kind: 'listed', proxies: given.proxies.map((n) => aProxy(n)) },
      records: given.records.map((n) => observedRecord(given.tombs ? aTombstone(n) : aRecord(n))),
      unreadable: given.unreadable.map(uidOf),
      sightings: new Map(given.seen.map(([serial, at]) => [`machine:gcp:i${serial}`, at])),
    }),
  );

const nameOf = (uid: string): string => machineName(INSTALLATION, uid, 'abcdef0123', 1);

const condemned = (given: Observation): readonly Machine[] =>
  decide(given).deletions.map((judgement) => judgement.machine);

const FORBIDDEN: Readonly<Record<string, (found: Machine, given: Observation) => boolean>> = {
  'is foreign (B2)': ({ installation, name }) =>
    installation !== INSTALLATION || !name.startsWith(`${INSTALLATION}-`),
  'has no UID (K6)': ({ uid }) => uid === undefined || uid === 'x',
  'is young or of unknown age (K6)': ({ createdAt }) =>
    createdAt === undefined || NOW - createdAt < LIMITS.minAgeMs,
  'was not seen before under its own instance id, long enough ago (row 81)': (found, { sightings }) => {
    const at = sightings.get(machineKey({ provider: 'gcp', machine: found }));
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
  'is stopping already (W1)': ({ state }) => state === 'stopping',
};

const RUNS = 2000;
const seed = Number(process.env['FC_SEED'] ?? randomInt(2 ** 31));

describe(`whatever gc has read (seed ${seed}), nothing is ever condemned that`, () => {
  const observations = fc.sample(observation, { numRuns: RUNS, seed });
  const all = observations.flatMap((given) => condemned(given).map((found) => ({ found, given })));

  test.each(Object.entries(FORBIDDEN))('%s', (_, forbidden) => {
    expect(all.filter(({ found, given }) => forbidden(found, given))).toEqual([]);
  });

  test('(and among what was generated there are machines to delete, and all that is forbidden)', () => {
    expect(all.length).toBeGreaterThan(50);
    const generated = observations.flatMap((given) =>
      given.listings.flatMap((listing) =>
        listing.kind === 'listed' ? listing.fleet.machines.map((found) => ({ found, given })) : [],
      ),
    );
    for (const forbidden of Object.values(FORBIDDEN))
      expect(generated.some(({ found, given }) => forbidden(found, given))).toBe(true);
  });
});
