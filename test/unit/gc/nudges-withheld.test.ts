import { describe, expect, test } from 'vitest';

import { decide } from '../../../functions/gc/decide.ts';
import type { Observation } from '../../../functions/gc/observation.ts';
import {
  LIMITS,
  MINUTE,
  NOW,
  aMachine,
  aProxy,
  aPublication,
  aRecord,
  anObservation,
  listed,
  observedRecord,
  without,
} from './builders.ts';

const machine = aMachine(1);
const unrecorded = (createdAt: number | undefined): Observation => {
  const other = { ...aMachine(1, { name: `${machine.name}1` }) };
  return anObservation({
    listings: [
      listed([machine, createdAt === undefined ? without(other, 'createdAt') : { ...other, createdAt }]),
    ],
    records: [observedRecord(aRecord(1))],
    proxies: { kind: 'listed', proxies: [aProxy(1)] },
  });
};

const WITHHELD: Readonly<Record<string, Observation>> = {
  'a machine without a zone, while some place cannot be seen (row 47)': anObservation({
    listings: [listed([], { unknownZones: ['elsewhere'] })],
    records: [observedRecord(aRecord(1, { serving: without(aPublication(machine), 'zone') }))],
    proxies: { kind: 'listed', proxies: [aProxy(1)] },
  }),
  'a machine that is too young for its record to know it for sure (row 81)': unrecorded(
    NOW - LIMITS.minAgeMs + 1,
  ),
  'a machine whose age is not told, though its record does not know it (row 81)': unrecorded(undefined),
  'an address that a closed record still names, later': anObservation({
    listings: [listed([machine])],
    records: [
      observedRecord(aRecord(1)),
      observedRecord(
        aRecord(2, { gone: true, serving: aPublication(machine, { publishedAt: NOW - MINUTE }) }),
      ),
    ],
    proxies: { kind: 'listed', proxies: [aProxy(1)] },
  }),
};

describe('gc nudges nobody about', () => {
  test.each(Object.entries(WITHHELD))('%s', (_, given) => {
    expect(decide(given).nudges).toEqual([]);
  });

  test('and does as soon as that machine is old enough', () => {
    expect(decide(unrecorded(NOW - LIMITS.minAgeMs)).nudges).toMatchObject([
      { reason: 'MachineNotRecorded' },
    ]);
  });
});
