import { describe, expect, test } from 'vitest';

import { decide } from '../../../functions/gc/decide.ts';
import { planReport } from '../../../functions/gc/report.ts';
import {
  INSTALLATION,
  MINUTE,
  NOW,
  aMachine,
  aProxy,
  aRecord,
  aTombstone,
  anObservation,
  anOrphan,
  observedRecord,
} from './builders.ts';

/** Somebody has written another installation's name into the status of a Proxy of ours, whose record is due. */
const taken = anObservation({
  proxies: { kind: 'listed', proxies: [aProxy(1, { owner: 'stage' })] },
  records: [observedRecord(aRecord(1, { wakeAt: NOW - MINUTE }))],
});

describe('a Proxy whose status names another installation', () => {
  test('is shown by a dry run, with its owner and what to do', () => {
    const [shown, ...more] = planReport(INSTALLATION, decide(taken)).proxies;
    expect(shown).toMatchObject({ ...aProxy(1).ref, rule: 'OtherInstallation', owner: 'stage' });
    expect(shown?.explanation).toContain('take status.installation out');
    expect(more).toEqual([]);
  });

  test('is nudged for nothing, since nobody here would deal with it', () => {
    expect(decide(taken).nudges).toEqual([]);
  });

  test('keeps its machine (B2)', () => {
    const proxies = { kind: 'listed' as const, proxies: [aProxy(1, { owner: 'stage' })] };
    expect(decide(anOrphan({ proxies }, aMachine(1))).deletions).toEqual([]);
  });
});

test('Proxies of ours, and those that nobody has taken yet, are nothing to show', () => {
  const { owner: _, ...free } = aProxy(2);
  const proxies = { kind: 'listed' as const, proxies: [aProxy(1), free] };
  expect(planReport(INSTALLATION, decide(anObservation({ proxies }))).proxies).toEqual([]);
});

describe('a record in a namespace that was taken out of PROXY_NAMESPACES too early (row 55)', () => {
  const records = [observedRecord(aRecord(1, { wakeAt: NOW - MINUTE }))];

  test('keeps its machine, asks nobody who would not answer, and is shown with what to do', () => {
    const plan = decide(anOrphan({ records, namespaces: ['another'] }));
    expect(plan.deletions).toEqual([]);
    expect(plan.nudges).toEqual([]);
    const [shown, ...more] = planReport(INSTALLATION, plan).records;
    expect(shown).toMatchObject({ ...aRecord(1).ref, rule: 'NamespaceNotOurs' });
    expect(shown?.explanation).toContain('put it back');
    expect(more).toEqual([]);
  });

  test('is dealt with again once the namespace is back', () => {
    const plan = decide(anOrphan({ records, namespaces: ['crawlers'] }));
    expect(plan.nudges).toEqual([{ ref: aRecord(1).ref, reason: 'ProxyGone' }]);
    expect(plan.stranded).toEqual([]);
  });

  test('is no matter when it is a tombstone', () => {
    const plan = decide(anObservation({ records: [observedRecord(aTombstone(1))], namespaces: ['another'] }));
    expect(plan.stranded).toEqual([]);
  });
});
