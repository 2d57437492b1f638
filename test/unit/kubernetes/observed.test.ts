import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { labelsHash } from '#shared/domain/observed.ts';

const labels = fc.dictionary(fc.string({ minLength: 1, maxLength: 8 }), fc.string({ maxLength: 8 }));

describe('the hash of labels', () => {
  test('is 14 hex characters, whatever the order of the labels', () => {
    fc.assert(
      fc.property(labels, (given) => {
        const reversed = Object.fromEntries(Object.entries(given).toReversed());
        expect(labelsHash(given)).toMatch(/^[0-9a-f]{14}$/);
        expect(labelsHash(reversed)).toBe(labelsHash(given));
      }),
    );
  });

  test('differs when a key or a value does, and keeps the two apart', () => {
    const sets = [
      {},
      { a: '' },
      { a: 'b' },
      { b: 'a' },
      { ab: '' },
      { a: 'b', c: '' },
      { a: 'bc' },
      { 'a","b': 'c' },
    ];
    expect(new Set(sets.map(labelsHash)).size).toBe(sets.length);
  });

  test('of no labels is one hash, absent or empty', () => {
    expect(labelsHash(undefined)).toBe(labelsHash({}));
  });

  test('has no collision among ten thousand', () => {
    const hashes = Array.from({ length: 10_000 }, (_, n) => labelsHash({ pool: `pool-${n}`, region: 'eu' }));
    expect(new Set(hashes).size).toBe(10_000);
  });

  test('is stored in status, so that it never changes', () => {
    expect(labelsHash({ pool: 'retail', region: 'eu' })).toBe('0a8a3403c6fe4a');
  });
});
