import { describe, expect, it } from 'vitest';

import type { Observation } from '../../../functions/provision/plan.ts';
import type { PublishedPlace } from '#shared/domain/record.ts';

import {
  NOW,
  UID,
  aMachine,
  aPublication,
  aRecord,
  anIntent,
  converged,
  facts,
  seen,
  unanswered,
} from './builders.ts';
import { conditionOf, planOf, writtenBy } from './plans.ts';

const OTHER = 'ffffffff-ffff-4fff-8fff-ffffffffffff';
const LESSER = '00000000-0000-4000-8000-000000000000';

/** Another Proxy's endpoint at the address of ours, published a moment later. */
const aRival = (change: Partial<PublishedPlace> = {}): PublishedPlace => ({
  ref: { namespace: 'crawlers', name: 'other', uid: OTHER },
  host: '203.0.113.7',
  port: 3128,
  publishedAt: NOW - 30_000,
  ...change,
});
const withUid = (uid: string) => ({ ref: { namespace: 'crawlers', name: 'other', uid } });

/** After the pass, the world as the next one finds it. */
const after = (observation: Observation): Observation => {
  const plan = planOf(observation);
  const record = writtenBy(plan);
  return {
    ...observation,
    ...(record ? { record } : {}),
    proxy: facts({ status: plan.status ?? observation.proxy?.status ?? {} }),
  };
};

const gaveWay = (): Observation => after(converged({ rivals: [aRival()] }));

describe('an address that another Proxy publishes later', () => {
  it('is withdrawn here, whatever part it plays', () => {
    const intent = anIntent();
    const draining = [{ ...aPublication(intent), until: NOW + 60_000 }];
    const records = {
      serving: aRecord({ serving: aPublication(intent) }),
      candidate: aRecord({ candidate: aPublication(intent) }),
      draining: aRecord({ draining }),
    };
    for (const record of Object.values(records)) {
      const plan = planOf(converged({ record, rivals: [aRival()] }));
      expect(plan.because).toBe('addressIsAnothers');
      expect(plan.status, 'the next pass follows at once, and knows more').toBeUndefined();
      expect(writtenBy(plan)).toMatchObject({ draining: [] });
      expect(writtenBy(plan)).not.toHaveProperty('serving');
      expect(writtenBy(plan)).not.toHaveProperty('candidate');
    }
  });

  it('is withdrawn while the own machine cannot be seen, and that is said at once', () => {
    const plan = planOf(converged({ fleet: unanswered(anIntent(), '503', true), rivals: [aRival()] }));
    expect(writtenBy(plan)).not.toHaveProperty('serving');
    expect(conditionOf(plan, 'Provisioned')).toMatchObject({ status: 'False', reason: 'Conflict' });
    expect(conditionOf(plan, 'Provisioned')?.message).toContain('crawlers/other');
    expect(plan.next).toEqual({ retry: true });
  });

  it('is withdrawn during a deletion too', () => {
    const leaving = { ...aPublication(anIntent()), until: NOW + 60_000 };
    const plan = planOf(
      converged({
        proxy: facts({ deleting: true }),
        record: aRecord({ deleting: true, draining: [leaving] }),
        leases: { [leaving.endpoint.id]: { count: 1, lastExpiry: NOW + 50_000 } },
        rivals: [aRival()],
      }),
    );
    expect(writtenBy(plan)?.draining).toEqual([]);
  });

  it.each([
    ['published earlier', aRival({ publishedAt: NOW - 120_000 })],
    ['on another port', aRival({ port: 3129 })],
    ['on another host', aRival({ host: '203.0.113.8' })],
    [
      'published in the same millisecond by a lesser uid',
      aRival({ publishedAt: NOW - 60_000, ...withUid(LESSER) }),
    ],
  ])('is kept here against one %s', (_, rival) => {
    expect(planOf(converged({ rivals: [rival] })).because).toBe('isServing');
  });

  it('has one winner when both were published in the same millisecond', () => {
    const rival = aRival({ publishedAt: NOW - 60_000 });
    expect(rival.ref.uid > UID).toBe(true);
    expect(planOf(converged({ rivals: [rival] })).because).toBe('addressIsAnothers');
  });
});

describe('who gave way', () => {
  it('does not come back as the newer one while the other is there: the two never take turns', () => {
    const plan = planOf(gaveWay());
    expect(plan.because).toBe('hasAnothersAddress');
    expect(plan.steps.filter(({ kind }) => kind === 'deleteMachine' || kind === 'createMachine')).toEqual([]);
    expect(conditionOf(plan, 'Provisioned')).toMatchObject({ status: 'False', reason: 'Conflict' });
    expect(conditionOf(plan, 'Stalled')?.status).toBe('True');
    expect(planOf(after(gaveWay())).because).toBe('hasAnothersAddress');
  });

  it('is published again when the other has gone', () => {
    const plan = planOf({ ...gaveWay(), rivals: [] });
    expect(plan.because).toBe('endpointIsNew');
    expect(writtenBy(plan)?.serving).toMatchObject({ publishedAt: NOW, verdict: { state: 'Unknown' } });
  });

  it('is the newer one when its machine got the address anew: it had another, or none, in between', () => {
    const between: readonly Partial<ReturnType<typeof aMachine>>[] = [
      { state: 'stopped' },
      { state: 'repairing' },
      { address: '203.0.113.9' },
    ];
    for (const change of between) {
      const apart = after({ ...gaveWay(), fleet: seen(aMachine(anIntent(), change)) });
      const [intent] = apart.record?.machines ?? [];
      expect(intent).not.toHaveProperty('yielded');
    }
    const stopped = after({ ...gaveWay(), fleet: seen(aMachine(anIntent(), { state: 'stopped' })) });
    expect(planOf({ ...stopped, fleet: seen(aMachine(anIntent())) }).because).toBe('endpointIsNew');
  });
});
