import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import type { Publication } from '#shared/domain/record.ts';
import { START_GRACE_MS, addResult, inDoubt, judge, startStreak } from '#shared/domain/verdict-rules.ts';
import type { ProbeOutcome, VerdictState } from '#shared/domain/verdict.ts';

const PUBLISHED = 1_000_000;
const LATER = PUBLISHED + START_GRACE_MS;
const THRESHOLDS = { failureThreshold: 3, successThreshold: 2 };

const published = (state: VerdictState, checkedAt = PUBLISHED): Publication => ({
  endpoint: {
    id: 'e1',
    host: '192.0.2.1',
    port: 3128,
    scheme: 'http',
    instanceId: '',
    credentialsVersion: '',
  },
  verdict: { state, since: PUBLISHED, checkedAt },
  publishedAt: PUBLISHED,
});

const streakOf = (letters: string, from = LATER) =>
  letters.split('').reduce(
    (streak, letter, index) =>
      addResult(streak, {
        endpointId: 'e1',
        at: from + index,
        outcome: letter === 'S' ? 'Ok' : letter === 'F' ? 'Timeout' : 'NotProbed',
      }),
    startStreak('e1'),
  );

const judged = (state: VerdictState, letters: string, now = LATER + 100): VerdictState =>
  judge(published(state), streakOf(letters), THRESHOLDS, now).state;

describe('verdicts (K7, row 69), thresholds 3 failures and 2 successes', () => {
  const table: Record<string, [VerdictState, string, VerdictState]> = {
    'one failure does not condemn': ['Healthy', 'F', 'Healthy'],
    'nor do two': ['Healthy', 'FF', 'Healthy'],
    'three in a row do': ['Healthy', 'FFF', 'Unhealthy'],
    'a success in between resets': ['Healthy', 'FFSFF', 'Healthy'],
    'F,F,S for ever never condemns': ['Healthy', 'FFSFFSFFSFFSFF', 'Healthy'],
    'one success does not absolve': ['Unhealthy', 'S', 'Unhealthy'],
    'two in a row do': ['Unhealthy', 'SS', 'Healthy'],
    'S,F for ever never absolves': ['Unhealthy', 'SFSFSFS', 'Unhealthy'],
    'an unknown one needs the same successes': ['Unknown', 'S', 'Unknown'],
    'an unknown one becomes healthy by them': ['Unknown', 'FSS', 'Healthy'],
    "the prober's own trouble neither counts": ['Healthy', 'FFNNN', 'Healthy'],
    'nor resets': ['Healthy', 'FFNF', 'Unhealthy'],
    'no result, no change': ['Healthy', '', 'Healthy'],
  };
  it.each(Object.entries(table))('%s', (_, [state, letters, expected]) => {
    expect(judged(state, letters)).toBe(expected);
  });

  it('while it may still be starting, an endpoint stays Unknown, then it is Unhealthy (row 51)', () => {
    expect(judged('Unknown', 'FFFFFFFF', LATER - 1)).toBe('Unknown');
    expect(judged('Unknown', 'FFF', LATER)).toBe('Unhealthy');
    expect(judged('Healthy', 'FFF', PUBLISHED + 1)).toBe('Unhealthy');
  });

  it('says what settled it, and from which address', () => {
    const streak = addResult(streakOf('S'), {
      endpointId: 'e1',
      at: LATER + 7,
      outcome: 'Ok',
      exitAddress: '203.0.113.5',
    });
    expect(judge(published('Unknown'), streak, THRESHOLDS, LATER + 9)).toStrictEqual({
      state: 'Healthy',
      since: LATER + 7,
      checkedAt: LATER + 7,
      outcome: 'Ok',
      exitAddress: '203.0.113.5',
    });
  });

  it('a new exit address is news, the same one is not', () => {
    const healthy = published('Healthy');
    const publication: Publication = {
      ...healthy,
      verdict: { ...healthy.verdict, exitAddress: '203.0.113.5' },
    };
    const seen = (exitAddress: string) =>
      judge(
        publication,
        addResult(startStreak('e1'), { endpointId: 'e1', at: LATER, outcome: 'Ok', exitAddress }),
        THRESHOLDS,
        LATER,
      );
    expect(seen('203.0.113.5')).toBe(publication.verdict);
    expect(seen('203.0.113.6')).toMatchObject({
      state: 'Healthy',
      since: PUBLISHED,
      exitAddress: '203.0.113.6',
    });
  });

  it('a result for another endpoint is dropped (B1, N4)', () => {
    const other = addResult(startStreak('e2'), { endpointId: 'e2', at: LATER, outcome: 'Ok' });
    const publication = published('Unknown');
    expect(judge(publication, other, { ...THRESHOLDS, successThreshold: 1 }, LATER)).toBe(
      publication.verdict,
    );
    expect(addResult(startStreak('e1'), { endpointId: 'e2', at: LATER, outcome: 'Ok' }).successes).toBe(0);
  });

  it('a result older than what settled the verdict is dropped', () => {
    const publication = published('Healthy', LATER + 1000);
    expect(judge(publication, streakOf('FFF', LATER), THRESHOLDS, LATER + 2000)).toBe(publication.verdict);
  });

  it('a result older than the newest is dropped', () => {
    const streak = streakOf('FF');
    expect(addResult(streak, { endpointId: 'e1', at: LATER - 5, outcome: 'Ok' })).toBe(streak);
  });
});

const letter = fc.constantFrom('S', 'F', 'N');
const history = fc.array(letter, { maxLength: 30 }).map((letters) => letters.join(''));
const anyThresholds = fc.record({
  failureThreshold: fc.integer({ min: 1, max: 10 }),
  successThreshold: fc.integer({ min: 1, max: 10 }),
});
const state = fc.constantFrom<VerdictState>('Unknown', 'Healthy', 'Unhealthy');

describe('verdicts, for every history', () => {
  it('flip exactly when the last results in a row reach their threshold', () => {
    fc.assert(
      fc.property(state, history, anyThresholds, (before, letters, thresholds) => {
        const after = judge(published(before), streakOf(letters), thresholds, LATER + 100).state;
        const counted = letters.replaceAll('N', '');
        const run = /(.)\1*$/.exec(counted)?.[0] ?? '';
        const condemned = run.startsWith('F') && run.length >= thresholds.failureThreshold;
        const absolved = run.startsWith('S') && run.length >= thresholds.successThreshold;
        expect(after).toBe(condemned ? 'Unhealthy' : absolved ? 'Healthy' : before);
      }),
    );
  });

  it('are settled within as many further probes as the larger threshold', () => {
    fc.assert(
      fc.property(state, letter, anyThresholds, (before, result, thresholds) => {
        let letters: string = result;
        while (inDoubt(published(before), streakOf(letters), thresholds, LATER)) letters += result;
        expect(letters.length).toBeLessThanOrEqual(
          Math.max(thresholds.failureThreshold, thresholds.successThreshold),
        );
      }),
    );
  });

  it('no outcome but Ok ever makes anything healthy', () => {
    const bad = fc.constantFrom<ProbeOutcome>(
      'ConnectRefused',
      'ProxyAuthFailed',
      'WrongContent',
      'NotProbed',
    );
    fc.assert(
      fc.property(state, fc.array(bad, { maxLength: 20 }), (before, outcomes) => {
        const streak = outcomes.reduce(
          (row, outcome, index) => addResult(row, { endpointId: 'e1', at: LATER + index, outcome }),
          startStreak('e1'),
        );
        const after = judge(published(before), streak, THRESHOLDS, LATER + 100).state;
        expect(after === 'Healthy').toBe(after === before && before === 'Healthy');
      }),
    );
  });
});
