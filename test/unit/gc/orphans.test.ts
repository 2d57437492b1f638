import { describe, expect, test } from 'vitest';

import { decide } from '../../../functions/gc/decide.ts';
import { identityOf, type Observation } from '../../../functions/gc/observation.ts';
import { KEEP_RULES, RULE_TEXT, type KeepRule } from '../../../functions/gc/orphans.ts';
import {
  LIMITS,
  MINUTE,
  NOW,
  ZONE,
  aMachine,
  aProxy,
  aRecord,
  aTombstone,
  anObservation,
  anOrphan,
  listed,
  observedRecord,
  seenBefore,
  uidOf,
  without,
} from './builders.ts';

const orphan = aMachine(1);
const stranger = aMachine(1, { installation: 'stage' });
const nameless = aMachine(1, { name: 'vm-of-somebody' });
const young = aMachine(1, { createdAt: NOW - LIMITS.minAgeMs + 1 });
const fromTheFuture = aMachine(1, { createdAt: NOW + 60 * MINUTE });
const relabelled = aMachine(1, { uid: uidOf(99) });

const KEPT: Readonly<Record<string, { readonly rule: KeepRule; readonly given: Observation }>> = {
  'a machine of another installation (B2, row 79)': {
    rule: 'OtherInstallation',
    given: anOrphan({}, stranger),
  },
  'a machine without an installation label (B2)': {
    rule: 'OtherInstallation',
    given: anOrphan({}, without(orphan, 'installation')),
  },
  'a machine whose name is not ours, whatever its labels say (B2)': {
    rule: 'ForeignName',
    given: anOrphan({}, nameless),
  },
  'a machine of an installation whose id begins with ours (B2)': {
    rule: 'ForeignName',
    given: anOrphan({}, aMachine(1, { name: orphan.name.replace('prod-', 'prod2-') })),
  },
  'a machine without a UID (K6)': { rule: 'NoUid', given: anOrphan({}, without(orphan, 'uid')) },
  'a machine whose UID label holds something else (K6)': {
    rule: 'NoUid',
    given: anOrphan({}, aMachine(1, { uid: 'retail-eu-1' })),
  },
  'a machine in a list with pages missing (row 48)': {
    rule: 'ListIncomplete',
    given: anOrphan({ listings: [listed([orphan], { partial: true })] }),
  },
  'a machine in a zone that could not be seen whole (row 47)': {
    rule: 'ZoneUnknown',
    given: anOrphan({ listings: [listed([orphan], { unknownZones: [ZONE] })] }),
  },
  'every machine when the Proxies could not be listed (row 82)': {
    rule: 'ProxiesUnknown',
    given: anOrphan({ proxies: { kind: 'unknown', message: '500' } }),
  },
  'every machine when the cluster did not say which it is (row 82)': {
    rule: 'ClusterUnknown',
    given: anOrphan({ cluster: { kind: 'unknown', message: '503' } }),
  },
  'a machine whose Proxy exists (K6)': {
    rule: 'ProxyExists',
    given: anOrphan({ proxies: { kind: 'listed', proxies: [aProxy(1)] } }),
  },
  'a machine whose Proxy is being deleted: that is the work of provision': {
    rule: 'ProxyExists',
    given: anOrphan({ proxies: { kind: 'listed', proxies: [aProxy(1, { deleting: true })] } }),
  },
  'a machine whose label was edited, by the UID in its name': {
    rule: 'ProxyExists',
    given: anOrphan({ proxies: { kind: 'listed', proxies: [aProxy(1)] } }, relabelled),
  },
  'a machine whose Proxy is gone but whose record is not closed': {
    rule: 'RecordLives',
    given: anOrphan({ records: [observedRecord(aRecord(1))] }),
  },
  'a machine that the record of another Proxy names': {
    rule: 'RecordLives',
    given: anOrphan({
      records: [observedRecord(aRecord(2, { machines: aRecord(1).machines }))],
    }),
  },
  'a machine whose record cannot be read': {
    rule: 'RecordUnreadable',
    given: anOrphan({ unreadable: [uidOf(1)] }),
  },
  'a machine that is stopping already (W1)': {
    rule: 'DeleteUnderWay',
    given: anOrphan({}, aMachine(1, { state: 'stopping' })),
  },
  'a machine of unknown age (K6)': { rule: 'AgeUnknown', given: anOrphan({}, without(orphan, 'createdAt')) },
  'a machine one millisecond too young (K6, row 81)': { rule: 'TooYoung', given: anOrphan({}, young) },
  'a machine created in the future of our clock (K6)': {
    rule: 'TooYoung',
    given: anOrphan({}, fromTheFuture),
  },
  'a machine that no earlier run saw (row 81)': {
    rule: 'FirstSighting',
    given: anOrphan({ sightings: new Map() }),
  },
  'a machine whose namesake was seen, but not it': {
    rule: 'FirstSighting',
    given: anOrphan({ sightings: seenBefore([aMachine(1, { instanceId: 'older' })]) }),
  },
  'a machine first seen a moment ago (row 81)': {
    rule: 'SeenTooRecently',
    given: anOrphan({ sightings: seenBefore([orphan], NOW - LIMITS.sightingGapMs + 1) }),
  },
  'a machine whose sighting lies in the future of our clock': {
    rule: 'SeenTooRecently',
    given: anOrphan({ sightings: seenBefore([orphan], NOW + MINUTE) }),
  },
};

describe('gc keeps', () => {
  test.each(Object.entries(KEPT))('%s', (_, { rule, given }) => {
    const plan = decide(given);
    expect(plan.deletions).toEqual([]);
    expect(plan.judgements.map((judgement) => judgement.rule)).toEqual([rule]);
  });

  test('for each rule of machines at least one in this table, and each rule has words for people', () => {
    const rules = new Set<KeepRule>([...Object.values(KEPT).map(({ rule }) => rule), 'MachineListed']);
    expect(rules).toEqual(new Set(KEEP_RULES));
    for (const rule of KEEP_RULES) expect(RULE_TEXT[rule]).toMatch(/^kept: /);
  });
});

describe('gc deletes', () => {
  test('a machine of ours, old, seen twice, whose Proxy is surely gone (K6)', () => {
    const plan = decide(anOrphan());
    expect(plan.deletions).toMatchObject([{ machine: orphan }]);
    expect(plan.frozen).toEqual([]);
  });

  test('a machine whose age and sighting are at the limit to the millisecond (K6)', () => {
    const old = aMachine(1, { createdAt: NOW - LIMITS.minAgeMs });
    const sightings = seenBefore([old], NOW - LIMITS.sightingGapMs);
    expect(decide(anOrphan({ sightings }, old)).deletions).toHaveLength(1);
  });

  test('a machine whose Proxy left a tombstone', () => {
    expect(decide(anOrphan({ records: [observedRecord(aTombstone(1))] })).deletions).toHaveLength(1);
  });

  test('a machine whose Proxy was made anew under the same name with another UID', () => {
    const successor = aProxy(2, { ref: { ...aProxy(1).ref, uid: uidOf(2) } });
    const proxies = { kind: 'listed', proxies: [successor] } as const;
    expect(decide(anOrphan({ proxies })).deletions).toHaveLength(1);
  });

  test('what it can see, while another zone cannot be seen (row 47)', () => {
    const hidden = aMachine(2, { zone: 'europe-west1-c' });
    const machines = [orphan, hidden];
    const plan = decide(
      anObservation({
        listings: [listed(machines, { unknownZones: ['europe-west1-c'] })],
        sightings: seenBefore(machines),
      }),
    );
    expect(plan.deletions.map((found) => identityOf(found).name)).toEqual([orphan.name]);
  });
});

describe('sightings', () => {
  test('the first one is planned, and stands while the machine has no Proxy', () => {
    const [key = ''] = seenBefore([orphan]).keys();
    expect(decide(anOrphan({ sightings: new Map() })).sightings).toEqual({ add: [key], remove: [] });
    expect(decide(anOrphan()).sightings).toEqual({ add: [], remove: [] });
  });

  test('one ends when the machine has a Proxy after all, so that it counts from zero again', () => {
    const plan = decide(anOrphan({ proxies: { kind: 'listed', proxies: [aProxy(1)] } }));
    expect(plan.sightings.remove).toHaveLength(1);
  });

  test('one ends when the machine is gone', () => {
    expect(decide(anOrphan({ listings: [listed([])] })).sightings.remove).toHaveLength(1);
  });

  test.each<readonly [string, Partial<Observation>]>([
    ['the Proxies', { proxies: { kind: 'unknown', message: '500' } }],
    ['a zone', { listings: [listed([], { unknownZones: [ZONE] })] }],
    ['the machines', { listings: [{ kind: 'unknown', provider: 'gcp', listedAt: NOW, message: '403' }] }],
  ])('none begins or ends in a run that could not see %s', (_, change) => {
    expect(decide(anOrphan(change)).sightings).toEqual({ add: [], remove: [] });
  });

  test('a machine that is too young is not yet counted as seen (row 81)', () => {
    expect(decide(anOrphan({ sightings: new Map() }, young)).sightings.add).toEqual([]);
  });
});
