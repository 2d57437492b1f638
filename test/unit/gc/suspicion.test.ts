import { describe, expect, test } from 'vitest';

import { decide } from '../../../functions/gc/decide.ts';
import { digestOf } from '../../../functions/gc/digest.ts';
import { isMachine, type Observation } from '../../../functions/gc/observation.ts';
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
  anOrphan,
  listed,
  observedRecord,
  seenBefore,
} from './builders.ts';

const range = (from: number, to: number): readonly number[] =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index);

/** `orphans` machines without a Proxy and `others` with one. */
const fleet = (orphans: number, others: number, change: Partial<Observation> = {}): Observation => {
  const machines = range(1, orphans + others).map((n) => aMachine(n));
  return anObservation({
    listings: [listed(machines)],
    sightings: seenBefore(machines),
    proxies: { kind: 'listed', proxies: range(orphans + 1, orphans + others).map((n) => aProxy(n)) },
    records: range(orphans + 1, orphans + others).map((n) => observedRecord(aRecord(n))),
    ...change,
  });
};

const reasons = (observation: Observation): readonly string[] =>
  decide(observation).frozen.map(({ reason }) => reason);

describe('a run is frozen', () => {
  test('when more than half of a fleet of four or more would go at once (row 82)', () => {
    expect(reasons(fleet(3, 2))).toEqual(['MostOfFleet']);
    expect(reasons(fleet(4, 0))).toEqual(['MostOfFleet']);
    expect(reasons(fleet(2, 2))).toEqual([]);
    expect(reasons(fleet(3, 0))).toEqual([]);
  });

  test('when the list of Proxies is suddenly empty (row 82)', () => {
    expect(reasons(fleet(0, 8, { proxies: { kind: 'listed', proxies: [] }, records: [] }))).toEqual([
      'MostOfFleet',
    ]);
  });

  test('machines of others do not count as fleet (B2)', () => {
    const foreign = range(20, 30).map((n) => aMachine(n, { installation: 'stage' }));
    const own = range(1, 4).map((n) => aMachine(n));
    const observation = fleet(4, 0, { listings: [listed([...own, ...foreign])] });
    expect(reasons(observation)).toEqual(['MostOfFleet']);
  });

  test('when more would go than one run may delete (row 82)', () => {
    const cap = LIMITS.maxDeletions;
    expect(reasons(fleet(cap, cap))).toEqual([]);
    expect(reasons(fleet(cap + 1, cap + 1))).toEqual(['TooMany']);
  });

  test('when another cluster answers than the one it knows, and it says how to hand over', () => {
    const cluster = { kind: 'changed', id: 'new', remembered: 'old' } as const;
    const [freeze] = decide(anOrphan({ cluster })).frozen;
    expect(freeze?.reason).toBe('ClusterChanged');
    expect(freeze?.message).toContain('installations/prod');
  });

  test('and still shows which machines it would have deleted', () => {
    expect(decide(fleet(4, 0)).deletions).toHaveLength(4);
  });
});

describe('the digest', () => {
  test('is the same for the same deletions in another order', () => {
    const [a, b] = [decide(fleet(2, 2)), decide(fleet(2, 2))];
    expect(digestOf(INSTALLATION, a.deletions)).toBe(digestOf(INSTALLATION, b.deletions.toReversed()));
  });

  test('differs with any machine more, with another machine of the same name, and per installation', () => {
    const { deletions } = decide(fleet(2, 2));
    const digest = digestOf(INSTALLATION, deletions);
    const other = deletions.filter(isMachine).map(({ provider, rule, machine }) => {
      const instanceId = `${machine.instanceId}x`;
      return { provider, rule, machine: { ...machine, instanceId } };
    });
    expect(other).toHaveLength(deletions.length);
    expect(digestOf(INSTALLATION, deletions.slice(1))).not.toBe(digest);
    expect(digestOf(INSTALLATION, other)).not.toBe(digest);
    expect(digestOf('stage', deletions)).not.toBe(digest);
  });
});

const sweptAfter = (ageMs: number, change: Partial<Observation> = {}): readonly unknown[] =>
  decide(anObservation({ records: [observedRecord(aTombstone(1), NOW - ageMs)], ...change })).sweep;

describe('tombstones', () => {
  test('are swept after an hour', () => {
    expect(sweptAfter(LIMITS.tombstoneAgeMs)).toHaveLength(1);
    expect(sweptAfter(LIMITS.tombstoneAgeMs - 1)).toEqual([]);
  });

  test('stay while a machine or a Proxy still carries the UID', () => {
    expect(sweptAfter(2 * LIMITS.tombstoneAgeMs, { listings: [listed([aMachine(1)])] })).toEqual([]);
    expect(
      sweptAfter(2 * LIMITS.tombstoneAgeMs, { proxies: { kind: 'listed', proxies: [aProxy(1)] } }),
    ).toEqual([]);
  });

  test('stay when not every machine could be seen', () => {
    expect(
      sweptAfter(2 * LIMITS.tombstoneAgeMs, { listings: [listed([], { unknownZones: ['a'] })] }),
    ).toEqual([]);
    expect(sweptAfter(2 * LIMITS.tombstoneAgeMs, { proxies: { kind: 'unknown', message: '500' } })).toEqual(
      [],
    );
  });

  test('live records are never swept', () => {
    const records = [observedRecord(aRecord(1), NOW - 600 * MINUTE)];
    expect(decide(anObservation({ records })).sweep).toEqual([]);
  });
});
