import { describe, expect, test } from 'vitest';

import { BUDGETS, budgetFindings, sizesOf, type Output } from '#test/tools/budgets.ts';
import { DEPLOYABLES } from '#test/tools/build.ts';

const COMPUTE = 'node_modules/@google-cloud/compute/build/src/v1/instances_client.js';
const PROTOS = 'node_modules/@google-cloud/compute/build/protos/protos.json';

const outputOf = (bytes: number, paths: readonly string[], imports: Output['imports'] = []): Output => ({
  bytes,
  inputs: Object.fromEntries(paths.map((path) => [path, { bytesInOutput: bytes / paths.length }])),
  imports,
});
const contents = (bytes: number, ...paths: string[]) => ({ 'dist/x/index.mjs': outputOf(bytes, paths) });
const now = (path: string) => ({ path, kind: 'import-statement' });
const later = (path: string) => ({ path, kind: 'dynamic-import' });

/** The entry awaits `x`, which needs `common` at once and `application` later. */
const SPLIT = {
  'dist/x/index.mjs': outputOf(1, ['start'], [later('dist/x/x.mjs')]),
  'dist/x/x.mjs': outputOf(10, ['functions/x/index.ts'], [now('dist/x/common.mjs'), later('dist/x/app.mjs')]),
  'dist/x/common.mjs': outputOf(20, ['shared/app/log.ts'], [now('node:fs')]),
  'dist/x/app.mjs': outputOf(300, ['functions/x/application.ts'], [now('dist/x/common.mjs')]),
};
const BUDGET = { startFiles: 3, startBytes: 31, bytes: 331, without: ['@google-cloud/compute'] };

describe('row 26: a bundle', () => {
  test('of every deployable has a budget', () => {
    expect(Object.keys(BUDGETS).toSorted()).toEqual([...DEPLOYABLES].toSorted());
  });

  test('reads at its start what its function needs at once, and nothing that is for later', () => {
    expect(sizesOf(SPLIT)).toEqual({ startFiles: 3, startBytes: 31, bytes: 331 });
    expect(sizesOf({ 'dist/x/index.js': outputOf(7, ['functions/x/index.ts']) })).toEqual({
      startFiles: 1,
      startBytes: 7,
      bytes: 7,
    });
  });

  test.each([
    ['too many files at its start', { startFiles: 2 }, /reads 3 files at/],
    ['too many bytes at its start', { startBytes: 30 }, /reads 31 bytes at/],
    ['too many bytes', { bytes: 330 }, /reads 331 bytes in all/],
  ])('with %s is found', (_, less, finding) => {
    expect(budgetFindings('x', BUDGET, SPLIT)).toEqual([]);
    expect(budgetFindings('x', { ...BUDGET, ...less }, SPLIT)).toEqual([expect.stringMatching(finding)]);
  });

  test('that holds a client that it has no use for, now or later, is found', () => {
    expect(budgetFindings('x', BUDGET, contents(1, COMPUTE))).toEqual(['x contains @google-cloud/compute']);
    const nested = { ...SPLIT, 'dist/x/app.mjs': outputOf(300, [`node_modules/x/${COMPUTE}`]) };
    expect(budgetFindings('x', BUDGET, nested)).toEqual(['x contains @google-cloud/compute']);
  });

  test('of which nothing is left after the build counts for nothing', () => {
    const output = { bytes: 1, inputs: { [COMPUTE]: { bytesInOutput: 0 } }, imports: [] };
    expect(budgetFindings('x', BUDGET, { 'dist/x/index.mjs': output })).toEqual([]);
  });

  test('with the description of the whole Compute API is found', () => {
    const budget = { startFiles: 1, startBytes: 20_000_000, bytes: 20_000_000, without: [] };
    expect(budgetFindings('gc', budget, contents(300_000, PROTOS))).toEqual([]);
    expect(budgetFindings('gc', budget, contents(12_000_000, PROTOS))).toHaveLength(1);
  });

  test('of echo may hold no package at all', () => {
    expect(budgetFindings('echo', BUDGETS.echo, contents(1000, 'shared/app/http.ts'))).toEqual([]);
    expect(budgetFindings('echo', BUDGETS.echo, contents(1000, 'node_modules/zod/index.js'))).toHaveLength(1);
  });
});
