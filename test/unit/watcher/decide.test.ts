import { describe, expect, test } from 'vitest';

import { FINALIZER } from '#shared/domain/proxy.ts';

import {
  EFFECT_WITHIN_MS,
  decide,
  type Decision,
  type Observation,
} from '../../../functions/watcher/decide.ts';
import { NOW, aNewView, aView, anObservation } from './builders.ts';

const forwardedAt = (at: number, ...keys: readonly string[]): ReadonlyMap<string, number> =>
  new Map(keys.map((key) => [key, at]));

const deleting = (change = {}) => aView(1, { deleting: true, generation: 2, ...change });
const withSecret = (version?: string) =>
  aView(1, {
    secrets: ['init'],
    observed: { generation: 1, labelsHash: 'aa', secretVersions: version ? { init: version } : {} },
  });

const aViewOfNobody = () => {
  const { installation: _, ...view } = aView();
  return view;
};

type Case = readonly [title: string, given: Partial<Observation>];

const NUDGES: readonly (readonly [...Case, reason: string])[] = [
  ['a Proxy that nobody has dealt with', { view: aNewView() }, 'New'],
  ['W6: a newer generation than the observed one', { view: aView(1, { generation: 2 }) }, 'SpecChanged'],
  [
    'labels that were edited at the same generation',
    { view: aView(1, { labelsHash: 'bb' }) },
    'LabelsChanged',
  ],
  [
    'spec and labels in one edit, once',
    { view: aView(1, { generation: 2, labelsHash: 'bb' }) },
    'SpecChanged, LabelsChanged',
  ],
  ['a deletion that has begun', { view: deleting() }, 'Deleting'],
  [
    'our finalizer gone from a living Proxy',
    { view: aView(1, { finalizers: ['other/one'] }) },
    'FinalizerMissing',
  ],
  [
    'B2: a Proxy that was handed over: its owner taken out of a status that covers the rest',
    { view: aViewOfNobody() },
    'NotOwned',
  ],
  ['a status that somebody wiped', { view: aView(1, { observed: {} }) }, 'New'],
  [
    'another label edit while the first one is under way',
    { view: aView(1, { labelsHash: 'cc' }), forwarded: forwardedAt(NOW, 'labels:bb') },
    'LabelsChanged',
  ],
  [
    'a newer generation while the last one is under way',
    { view: aView(1, { generation: 3 }), forwarded: forwardedAt(NOW, 'generation:2') },
    'SpecChanged',
  ],
  [
    'B3: a Secret at another version',
    { view: withSecret('7'), secretVersions: { init: '8' } },
    'SecretChanged',
  ],
  [
    'B3: a Secret that is there now',
    { view: withSecret('missing'), secretVersions: { init: '8' } },
    'SecretChanged',
  ],
  ['a Secret that is gone', { view: withSecret('7'), secretVersions: { init: 'missing' } }, 'SecretChanged'],
  [
    'a Secret of which nothing was observed',
    { view: withSecret(), secretVersions: { init: '7' } },
    'SecretChanged',
  ],
  ['a Proxy that went past its finalizer', { gone: true, view: aView() }, 'Gone'],
  ['a Proxy that went while its deletion had not been forwarded', { gone: true, view: deleting() }, 'Gone'],
  [
    'a change without effect for two minutes',
    { view: aView(1, { generation: 2 }), forwarded: forwardedAt(NOW - EFFECT_WITHIN_MS, 'generation:2') },
    'SpecChanged (no effect yet)',
  ],
  [
    'a deletion without effect for two minutes',
    { view: deleting(), forwarded: forwardedAt(NOW - EFFECT_WITHIN_MS, 'generation:2') },
    'Deleting (no effect yet)',
  ],
];

const SETTLED: readonly Case[] = [
  ['a Proxy that status.observed covers, as after a restart', { view: aView() }],
  [
    'a deletion that status.observed covers',
    { view: deleting({ observed: { generation: 2, labelsHash: 'aa' } }) },
  ],
  ['another installation’s Proxy', { view: aView(1, { installation: 'other', generation: 9 }) }],
  ['another installation’s Proxy that is gone', { gone: true, view: aView(1, { installation: 'other' }) }],
  ['a Secret at the observed version', { view: withSecret('7'), secretVersions: { init: '7' } }],
  ['a Secret that could not be read', { view: withSecret('7'), secretVersions: {} }],
  [
    'a Secret of a Proxy that is being deleted',
    {
      view: { ...withSecret('7'), deleting: true },
      secretVersions: { init: '8' },
    },
  ],
  [
    'a Proxy that went after its deletion was forwarded',
    { gone: true, view: deleting(), forwarded: forwardedAt(NOW, 'generation:2') },
  ],
  [
    'a Proxy that went after status.observed covered its deletion',
    { gone: true, view: deleting({ observed: { generation: 2, labelsHash: 'aa' } }) },
  ],
  [
    'a bypassed deletion that was forwarded',
    { gone: true, view: aView(), forwarded: forwardedAt(NOW, 'gone') },
  ],
  [
    'a deletion held by others, forwarded long ago, which can show no effect',
    {
      view: deleting({ finalizers: ['other/one'] }),
      forwarded: forwardedAt(NOW - 10 * EFFECT_WITHIN_MS, 'generation:2'),
    },
  ],
];

const judged = (given: Partial<Observation>): Decision => decide(anObservation(given));

describe('the watcher forwards', () => {
  test.each(NUDGES)('%s', (_, given, reason) => {
    expect(judged(given)).toMatchObject({ kind: 'nudge', reason });
  });
});

describe('the watcher leaves alone', () => {
  test.each(SETTLED)('%s', (_, given) => {
    expect(judged(given).kind).toBe('settled');
  });
});

describe('a change that was forwarded', () => {
  const view = aView(1, { generation: 2 });
  const forwarded = forwardedAt(NOW - 1000, 'generation:2');

  test('waits for its effect for two minutes from then', () => {
    expect(judged({ view, forwarded })).toMatchObject({ kind: 'wait', until: NOW - 1000 + EFFECT_WITHIN_MS });
  });

  test('W6: is not forwarded again for our own finalizer and status writes', () => {
    const all = forwardedAt(NOW, 'generation:1', 'labels:aa', 'finalizer');
    expect(judged({ view: aNewView(), forwarded: all }).kind).toBe('wait');
    expect(judged({ view: aNewView(1, { finalizers: [FINALIZER] }), forwarded: all }).kind).toBe('wait');
    expect(
      judged({ view: aNewView(1, { finalizers: [FINALIZER], installation: 'prod' }), forwarded: all }).kind,
    ).toBe('wait');
    expect(judged({ view: aView(), forwarded: all }).kind).toBe('settled');
  });

  test('keeps its Secrets’ news back: the pass that it asked for reads them anyway', () => {
    const given = { view: { ...withSecret('7'), generation: 2 }, forwarded };
    expect(judged({ ...given, secretVersions: { init: '8' } }).kind).toBe('wait');
  });

  test('is named once, with everything that is open, so that nothing of it is forwarded separately', () => {
    const open = ['generation:1', 'labels:aa', 'finalizer'];
    expect(judged({ view: aNewView() })).toMatchObject({ kind: 'nudge', open });
  });
});
