import { describe, expect, test } from 'vitest';

import { decide } from '../../../functions/gc/decide.ts';
import { digestOf } from '../../../functions/gc/digest.ts';
import { looksAtLeftovers, minuteOf } from '../../../functions/gc/leftovers.ts';
import { deletionsMark, type Observation } from '../../../functions/gc/observation.ts';
import { KEEP_RULES, type KeepRule } from '../../../functions/gc/orphans.ts';
import {
  INSTALLATION,
  LIMITS,
  MINUTE,
  NOW,
  ZONE,
  aLeftover,
  aMachine,
  aProxy,
  aRecord,
  aTombstone,
  anAbandoned,
  anObservation,
  leftBehind,
  listed,
  observedRecord,
  seenBefore,
  uidOf,
  without,
} from './builders.ts';

const left = aLeftover(1);

const KEPT: Readonly<Record<string, { readonly rule: KeepRule; readonly given: Observation }>> = {
  'of another installation (B2, row 79)': {
    rule: 'OtherInstallation',
    given: anAbandoned({}, aLeftover(1, { installation: 'stage' })),
  },
  'that nobody labelled (B2)': {
    rule: 'OtherInstallation',
    given: anAbandoned({}, without(left, 'installation')),
  },
  'whose name is not ours, whatever its labels say (B2)': {
    rule: 'ForeignName',
    given: anAbandoned({}, aLeftover(1, { name: 'disk-of-somebody' })),
  },
  'without a UID (K6)': { rule: 'NoUid', given: anAbandoned({}, without(left, 'uid')) },
  'in a list with pages missing (row 48)': {
    rule: 'ListIncomplete',
    given: anAbandoned({ leftovers: [leftBehind([left], { partial: true })] }),
  },
  'when pages of the list of machines are missing (row 48)': {
    rule: 'ListIncomplete',
    given: anAbandoned({ listings: [listed([], { partial: true })] }),
  },
  'when the machines could not be listed (row 48)': {
    rule: 'ListIncomplete',
    given: anAbandoned({ listings: [{ kind: 'unknown', provider: 'gcp', listedAt: NOW, message: '403' }] }),
  },
  'in a zone that could not be seen whole (row 47)': {
    rule: 'ZoneUnknown',
    given: anAbandoned({ leftovers: [leftBehind([left], { unknownZones: [ZONE] })] }),
  },
  'in a zone whose machines could not be seen (row 47)': {
    rule: 'ZoneUnknown',
    given: anAbandoned({ listings: [listed([], { unknownZones: [ZONE] })] }),
  },
  'when the Proxies could not be listed (row 82)': {
    rule: 'ProxiesUnknown',
    given: anAbandoned({ proxies: { kind: 'unknown', message: '500' } }),
  },
  'when the cluster did not say which it is (row 82)': {
    rule: 'ClusterUnknown',
    given: anAbandoned({ cluster: { kind: 'unknown', message: '503' } }),
  },
  'of a Proxy that exists: that is the work of provision (K6)': {
    rule: 'ProxyExists',
    given: anAbandoned({ proxies: { kind: 'listed', proxies: [aProxy(1)] } }),
  },
  'whose label was edited, by the UID in its name': {
    rule: 'ProxyExists',
    given: anAbandoned(
      { proxies: { kind: 'listed', proxies: [aProxy(1)] } },
      aLeftover(1, { uid: uidOf(99) }),
    ),
  },
  'of a Proxy whose record is not closed': {
    rule: 'RecordLives',
    given: anAbandoned({ records: [observedRecord(aRecord(1))] }),
  },
  'whose name the record of another Proxy has': {
    rule: 'RecordLives',
    given: anAbandoned({ records: [observedRecord(aRecord(2, { machines: aRecord(1).machines }))] }),
  },
  'of a record that cannot be read': {
    rule: 'RecordUnreadable',
    given: anAbandoned({ unreadable: [uidOf(1)] }),
  },
  'while a machine of its name is listed': {
    rule: 'MachineListed',
    given: anAbandoned({ listings: [listed([aMachine(1)])] }),
  },
  'of unknown age (K6)': { rule: 'AgeUnknown', given: anAbandoned({}, without(left, 'createdAt')) },
  'one millisecond too young (K6, row 81)': {
    rule: 'TooYoung',
    given: anAbandoned({}, aLeftover(1, { createdAt: NOW - LIMITS.minAgeMs + 1 })),
  },
  'that no earlier run saw (row 81)': {
    rule: 'FirstSighting',
    given: anAbandoned({ sightings: seenBefore([aMachine(1, { instanceId: left.id })]) }),
  },
  'whose namesake was seen, but not it': {
    rule: 'FirstSighting',
    given: anAbandoned({ sightings: seenBefore([aLeftover(1, { id: 'older' })]) }),
  },
  'first seen a moment ago (row 81)': {
    rule: 'SeenTooRecently',
    given: anAbandoned({ sightings: seenBefore([left], NOW - LIMITS.sightingGapMs + 1) }),
  },
};

describe('gc keeps a leftover', () => {
  test.each(Object.entries(KEPT))('%s', (_, { rule, given }) => {
    const plan = decide(given);
    expect(plan.deletions).toEqual([]);
    expect(plan.leftovers?.map((judgement) => judgement.rule)).toEqual([rule]);
  });

  test('by each rule that there is, but that of machines which are stopping', () => {
    const rules = new Set<KeepRule>([...Object.values(KEPT).map(({ rule }) => rule), 'DeleteUnderWay']);
    expect(rules).toEqual(new Set(KEEP_RULES));
  });
});

describe('gc deletes a leftover', () => {
  test('of ours, old, seen twice, whose Proxy is surely gone and whose machine is not there (K6)', () => {
    expect(decide(anAbandoned()).deletions).toMatchObject([{ leftover: left }]);
  });

  test('whose Proxy left a tombstone, which stays as long as it', () => {
    const old = observedRecord(aTombstone(1), NOW - 2 * LIMITS.tombstoneAgeMs);
    const plan = decide(anAbandoned({ records: [old] }));
    expect(plan.deletions).toHaveLength(1);
    expect(plan.sweep).toEqual([]);
    expect(decide(anObservation({ records: [old] })).sweep).toHaveLength(1);
  });

  test('while a machine has its name in another zone', () => {
    const elsewhere = aMachine(1, { zone: 'europe-west1-c', createdAt: NOW });
    expect(decide(anAbandoned({ listings: [listed([elsewhere])] })).deletions).toHaveLength(1);
  });

  test('and a list of leftovers that fails keeps no machine (row 48)', () => {
    const orphan = aMachine(2);
    const plan = decide(
      anObservation({
        listings: [listed([orphan])],
        sightings: seenBefore([orphan, left]),
        leftovers: [{ kind: 'unknown', provider: 'gcp', message: '403' }],
      }),
    );
    expect(plan.deletions).toMatchObject([{ machine: orphan }]);
    expect(plan.doubts).toEqual(['what machines of gcp left behind could not be listed: 403']);
    expect(plan.sightings.remove).toEqual([]);
  });
});

test('an outage of a zone that both lists show is one doubt (row 47)', () => {
  const unknownZones = [ZONE];
  const given = { listings: [listed([], { unknownZones })], leftovers: [leftBehind([], { unknownZones })] };
  expect(decide(anObservation(given)).doubts).toEqual([`zone ${ZONE} of gcp could not be seen`]);
});

const range = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index + 1);

/** A fleet of four, of which `orphans` have lost their Proxy, and leftovers of `abandoned` that are long gone. */
const fleet = (orphans: number, abandoned: number): Observation => {
  const machines = range(4).map((n) => aMachine(n));
  const leftovers = range(abandoned).map((n) => aLeftover(n + 100));
  const living = range(4).filter((n) => n > orphans);
  return anObservation({
    listings: [listed(machines)],
    leftovers: [leftBehind(leftovers)],
    sightings: seenBefore([...machines, ...leftovers]),
    proxies: { kind: 'listed', proxies: living.map((n) => aProxy(n)) },
    records: living.map((n) => observedRecord(aRecord(n))),
  });
};

const reasons = (given: Observation): readonly string[] => decide(given).frozen.map(({ reason }) => reason);

describe('leftovers and suspicion', () => {
  test('neither hide that most of the fleet would go, nor look like it (row 82)', () => {
    expect(reasons(fleet(3, LIMITS.maxDeletions - 3))).toEqual(['MostOfFleet']);
    expect(reasons(fleet(0, LIMITS.maxDeletions))).toEqual([]);
  });

  test('count for the cap of deletions (row 82)', () => {
    expect(reasons(fleet(2, LIMITS.maxDeletions - 2))).toEqual([]);
    expect(reasons(fleet(2, LIMITS.maxDeletions - 1))).toEqual(['TooMany']);
  });

  test('have a digest of their own, even where an id is that of a machine', () => {
    const { deletions } = decide(anAbandoned());
    const twin = aMachine(1, { instanceId: left.id });
    const machines = decide(
      anObservation({ listings: [listed([twin])], sightings: seenBefore([twin]) }),
    ).deletions;
    expect(machines).toHaveLength(1);
    expect(digestOf(INSTALLATION, deletions)).not.toBe(digestOf(INSTALLATION, machines));
  });
});

describe('a run looks at leftovers', () => {
  const nothing: ReadonlyMap<string, number> = new Map();
  const looks = (now: number, sightings = nothing, installation = INSTALLATION): boolean =>
    looksAtLeftovers({ installation, now, sightings });

  test.each(['prod', 'stage', 'prod2', 'abc'])('in one minute of each hour (goal 16): %s', (installation) => {
    for (const day of [0, 1]) {
      const minutes = range(1440).map((n) => NOW + day * 1440 * MINUTE + n * MINUTE + 59_000);
      const due = minutes.filter((now) => looks(now, nothing, installation));
      expect(due).toHaveLength(24);
      expect(new Set(due.map((now) => new Date(now).getUTCMinutes()))).toEqual(
        new Set([minuteOf(installation)]),
      );
    }
  });

  test('while one was seen, and for ten minutes after machines were deleted', () => {
    expect(looks(NOW)).toBe(false);
    expect(looks(NOW, seenBefore([aMachine(1)]))).toBe(false);
    expect(looks(NOW, seenBefore([left]))).toBe(true);
    const mark = new Map([[deletionsMark(NOW), NOW]]);
    expect(looks(NOW + 10 * MINUTE - 1, mark)).toBe(true);
    expect(looks(NOW + 10 * MINUTE, mark)).toBe(false);
    expect(looks(NOW - MINUTE, mark)).toBe(true);
  });

  test('and one that does not look forgets none, and no mark before its time', () => {
    const sightings = new Map([...seenBefore([left]), [deletionsMark(NOW), NOW]]);
    const unseen = anObservation({ sightings });
    expect(decide(unseen)).not.toHaveProperty('leftovers');
    expect(decide(unseen).sightings.remove).toEqual([]);
    const later = decide({ ...unseen, leftovers: [leftBehind([])], now: NOW + 10 * MINUTE });
    expect(later.sightings.remove).toHaveLength(2);
  });
});
