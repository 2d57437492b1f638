import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import type { ProxyStatus } from '#shared/kubernetes/cluster.ts';
import { statusPatch } from '#shared/kubernetes/status-patch.ts';

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** RFC 7386, as the API server applies it. */
const mergePatch = (target: unknown, patch: unknown): unknown => {
  if (!isObject(patch)) return patch;
  const result: Record<string, unknown> = isObject(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = mergePatch(result[key], value);
  }
  return result;
};

const condition = fc.record(
  {
    type: fc.constantFrom('Ready', 'Healthy'),
    status: fc.constantFrom('True' as const, 'False' as const),
    lastTransitionTime: fc.constant('2026-01-01T00:00:00Z'),
    reason: fc.constantFrom('A', 'B'),
    message: fc.string({ maxLength: 3 }),
  },
  { noNullPrototype: true },
);

const versions = fc.dictionary(fc.constantFrom('x', 'y'), fc.constantFrom('1', '2'), {
  noNullPrototype: true,
});

const status: fc.Arbitrary<ProxyStatus> = fc.record(
  {
    host: fc.constantFrom('a', 'b'),
    port: fc.constantFrom(1, 2),
    observed: fc.record(
      { generation: fc.constantFrom(1, 2), secretVersions: versions },
      { requiredKeys: [], noNullPrototype: true },
    ),
    conditions: fc.array(condition, { maxLength: 2 }),
  },
  { requiredKeys: [], noNullPrototype: true },
);

describe('a status patch', () => {
  test('makes the new status out of the old one, vanished fields included', () => {
    fc.assert(
      fc.property(status, status, (before, after) => {
        const patch = statusPatch(before, after);
        expect(mergePatch(before, patch ?? {})).toStrictEqual({ ...after });
      }),
    );
  });

  test('K1: is none when nothing changed', () => {
    fc.assert(
      fc.property(status, (same) => {
        expect(statusPatch(same, structuredClone(same))).toBeUndefined();
      }),
    );
  });

  test('removes by null, at any depth, and names nothing that stays', () => {
    const before = {
      host: 'a',
      zone: 'z',
      observed: { generation: 1, secretVersions: { one: '1', two: '2' } },
    };
    const after = { host: 'a', observed: { generation: 2, secretVersions: { one: '1' } } };
    expect(statusPatch(before, after)).toEqual({
      zone: null,
      observed: { generation: 2, secretVersions: { two: null } },
    });
  });
});
