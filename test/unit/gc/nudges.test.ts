import { describe, expect, test } from 'vitest';

import { decide } from '../../../functions/gc/decide.ts';
import { proxyKey, type Observation, type ProxySummary } from '../../../functions/gc/observation.ts';
import { NUDGE_REASONS, type NudgeReason } from '../../../functions/gc/nudges.ts';
import {
  LIMITS,
  MINUTE,
  NOW,
  ZONE,
  aMachine,
  aProxy,
  aPublication,
  aRecord,
  aTombstone,
  anObservation,
  listed,
  observedRecord,
  uidOf,
  without,
} from './builders.ts';

const machine = aMachine(1);
const converged = (change: Partial<Observation> = {}): Observation =>
  anObservation({
    listings: [listed([machine])],
    records: [observedRecord(aRecord(1))],
    proxies: { kind: 'listed', proxies: [aProxy(1)] },
    ...change,
  });

const withProxy = (proxy: ProxySummary, records: Observation['records'], seenAt?: number): Observation =>
  converged({
    proxies: { kind: 'listed', proxies: [proxy] },
    records,
    sightings: new Map(seenAt === undefined ? [] : [[proxyKey(proxy), seenAt]]),
  });

const record = observedRecord(aRecord(1));
const uncovered = aProxy(1, { covered: false, generation: 2 });
const longAgo = NOW - LIMITS.sightingGapMs;

/** The first machine's address, given to another one since. */
const RECYCLED = {
  endpoint: { ...aPublication(aMachine(2)).endpoint, host: machine.address ?? '' },
  publishedAt: NOW - MINUTE,
};

const NUDGED: Readonly<Record<string, { readonly reason: NudgeReason; readonly given: Observation }>> = {
  'a record whose time has come': {
    reason: 'Due',
    given: converged({ records: [observedRecord(aRecord(1, { wakeAt: NOW }))] }),
  },
  'a record whose machine has vanished (B1)': {
    reason: 'MachineGone',
    given: converged({ listings: [listed([])] }),
  },
  'a record whose machine has vanished, although another zone cannot be seen (row 47)': {
    reason: 'MachineGone',
    given: converged({ listings: [listed([], { unknownZones: ['europe-west1-c'] })] }),
  },
  'a record whose machine was stopped (B1, row 45)': {
    reason: 'MachineNotRunning',
    given: converged({ listings: [listed([aMachine(1, { state: 'stopped' })])] }),
  },
  'a record whose machine has another address (B1, row 46)': {
    reason: 'AddressChanged',
    given: converged({ listings: [listed([aMachine(1, { address: '203.0.113.200' })])] }),
  },
  'a record whose running machine has no address any more (B1)': {
    reason: 'AddressChanged',
    given: converged({ listings: [listed([without(machine, 'address')])] }),
  },
  'a record whose machine was made anew under its name (B1)': {
    reason: 'OtherMachine',
    given: converged({ listings: [listed([aMachine(1, { instanceId: 'another' })])] }),
  },
  'a record whose address another one publishes, later': {
    reason: 'AddressShared',
    given: converged({
      listings: [listed([machine, aMachine(2, { address: RECYCLED.endpoint.host })])],
      records: [
        observedRecord(aRecord(1)),
        observedRecord(aRecord(2, { serving: aPublication(aMachine(2), RECYCLED) })),
      ],
      proxies: { kind: 'listed', proxies: [aProxy(1), aProxy(2)] },
    }),
  },
  'a record whose Proxy is gone, so that provision closes the gate': {
    reason: 'ProxyGone',
    given: converged({ proxies: { kind: 'listed', proxies: [] } }),
  },
  'a Proxy that has a machine which its record does not know': {
    reason: 'MachineNotRecorded',
    given: converged({ listings: [listed([machine, aMachine(1, { name: `${machine.name}1` })])] }),
  },
  'a Proxy that has a second machine of a recorded name, in a zone that its record does not know': {
    reason: 'MachineNotRecorded',
    given: converged({
      listings: [listed([machine, aMachine(1, { zone: 'elsewhere-a', instanceId: 'i-twin' })])],
    }),
  },
  'a Proxy that nobody has recorded for two minutes': {
    reason: 'NoRecord',
    given: withProxy(aProxy(1), [], longAgo),
  },
  'a Proxy whose newest generation nobody has looked at for two minutes': {
    reason: 'NotObserved',
    given: withProxy(uncovered, [record], longAgo),
  },
};

describe('gc nudges', () => {
  test.each(Object.entries(NUDGED))('%s', (_, { reason, given }) => {
    expect(decide(given).nudges).toEqual([{ ref: aProxy(1).ref, reason }]);
  });

  test('for each reason at least once in this table', () => {
    expect(new Set(Object.values(NUDGED).map(({ reason }) => reason))).toEqual(new Set(NUDGE_REASONS));
  });

  test('records that are due also when neither machines nor Proxies could be listed (row 82)', () => {
    const given = converged({
      listings: [{ kind: 'unknown', provider: 'gcp', listedAt: NOW, message: '500' }],
      proxies: { kind: 'unknown', message: '500' },
      records: [observedRecord(aRecord(1, { wakeAt: NOW - 1 }))],
    });
    expect(decide(given).nudges.map(({ reason }) => reason)).toEqual(['Due']);
  });

  test('each Proxy once, whatever the number of its reasons', () => {
    const given = converged({
      listings: [listed([aMachine(1, { state: 'stopped' })])],
      records: [observedRecord(aRecord(1, { wakeAt: NOW - MINUTE }))],
      proxies: { kind: 'listed', proxies: [] },
    });
    expect(decide(given).nudges).toEqual([{ ref: aProxy(1).ref, reason: 'MachineNotRunning' }]);
  });

  test('no more than a run may send, longest due first', () => {
    const records = [3, 1, 2].map((n) => observedRecord(aRecord(n, { wakeAt: NOW - 10 * MINUTE + n })));
    const given = anObservation({
      limits: { ...LIMITS, maxNudges: 2 },
      listings: [listed([1, 2, 3].map((n) => aMachine(n)))],
      proxies: { kind: 'listed', proxies: [1, 2, 3].map((n) => aProxy(n)) },
      records,
    });
    expect(decide(given).nudges.map(({ ref }) => ref.uid)).toEqual([uidOf(1), uidOf(2)]);
  });
});

const SILENT: Readonly<Record<string, Observation>> = {
  'a converged Proxy': converged(),
  'a record whose time is still to come': converged({
    records: [observedRecord(aRecord(1, { wakeAt: NOW + 1 }))],
  }),
  'a tombstone': converged({
    proxies: { kind: 'listed', proxies: [] },
    records: [observedRecord(aTombstone(1))],
  }),
  'a machine missing from its unreachable zone (row 47)': converged({
    listings: [listed([], { unknownZones: [ZONE] })],
  }),
  'a machine missing from an incomplete list (row 48)': converged({
    listings: [listed([], { partial: true })],
  }),
  'a machine that was published while the list was made': converged({
    listings: [listed([])],
    records: [observedRecord(aRecord(1, { serving: aPublication(machine, { publishedAt: NOW }) }))],
  }),
  'a machine in a state that we do not know': converged({
    listings: [listed([aMachine(1, { state: 'unknown' })])],
  }),
  'a record whose Proxy is missing from the list of another cluster': converged({
    proxies: { kind: 'listed', proxies: [] },
    cluster: { kind: 'changed', id: 'new', remembered: 'old' },
  }),
  'a new Proxy that nobody can have recorded yet': withProxy(aProxy(1), []),
  'an edit that provision may still be working on': withProxy(uncovered, [record], longAgo + 1),
  'a Proxy of another installation': withProxy(aProxy(1, { owner: 'stage' }), [], longAgo),
  'an External proxy without a machine': anObservation({
    records: [observedRecord(aRecord(1, { provider: 'External', machines: [] }))],
    proxies: { kind: 'listed', proxies: [aProxy(1)] },
  }),
  'a Proxy whose record cannot be read': withProxy(aProxy(1), [], longAgo),
};

describe('gc does not nudge', () => {
  test.each(Object.entries(SILENT))('%s', (title, given) => {
    const unreadable = title.endsWith('cannot be read') ? [uidOf(1)] : [];
    expect(decide({ ...given, unreadable }).nudges).toEqual([]);
  });

  test('an edited Proxy by the sighting of its earlier generation', () => {
    const [before, after] = [uncovered, { ...uncovered, generation: 3 }];
    const given = withProxy(after, [record]);
    const plan = decide({ ...given, sightings: new Map([[proxyKey(before), longAgo]]) });
    expect(plan.nudges).toEqual([]);
    expect(plan.sightings).toEqual({ add: [proxyKey(after)], remove: [proxyKey(before)] });
  });
});

const nudgesOf = (more: Parameters<typeof aRecord>[1]) =>
  decide(converged({ records: [observedRecord(aRecord(1, { wakeAt: NOW, ...more }))] })).nudges;

describe('where another cluster answers than the one that is known, gc nudges', () => {
  const cluster = { kind: 'changed', id: 'new', remembered: 'old' } as const;
  const due = observedRecord(aRecord(1, { wakeAt: NOW - MINUTE }));

  test('nothing that only the records speak of (B2)', () => {
    const proxies = { kind: 'listed', proxies: [aProxy(2)] } as const;
    const { nudges } = decide(converged({ cluster, records: [due], proxies, listings: [listed([])] }));
    expect(nudges).toEqual([]);
  });

  test('what is there', () => {
    const { nudges } = decide(converged({ cluster, records: [due] }));
    expect(nudges).toEqual([{ ref: aRecord(1).ref, reason: 'Due' }]);
  });
});

test('a tombstone out of an old backup does not hide its Proxy: it is nudged at the second sighting (row 82)', () => {
  const records = [observedRecord(aTombstone(1))];
  const seen = NOW - LIMITS.sightingGapMs;
  expect(decide(withProxy(aProxy(1), records, seen)).nudges).toEqual([
    { ref: aProxy(1).ref, reason: 'NoRecord' },
  ]);
  expect(decide(withProxy(aProxy(1, { deleting: true }), records, seen)).nudges).toEqual([]);
});

test('a nudge of a record that is under way goes on in the trace of its change, and others begin none', () => {
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
  expect(nudgesOf({ traceparent })).toMatchObject([{ reason: 'Due', traceparent }]);
  expect(nudgesOf({})[0]).not.toHaveProperty('traceparent');
});
