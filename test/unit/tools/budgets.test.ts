import { describe, expect, test } from 'vitest';

import { BUDGETS, budgetFindings } from '#test/tools/budgets.ts';
import { DEPLOYABLES } from '#test/tools/build.ts';

const contents = (bytes: number, ...paths: string[]) => ({
  bytes,
  inputs: Object.fromEntries(paths.map((path) => [path, { bytesInOutput: bytes / paths.length }])),
});
const COMPUTE = 'node_modules/@google-cloud/compute/build/src/v1/instances_client.js';
const PROTOS = 'node_modules/@google-cloud/compute/build/protos/protos.json';

describe('row 26: a bundle', () => {
  test('of every deployable has a budget', () => {
    expect(Object.keys(BUDGETS).toSorted()).toEqual([...DEPLOYABLES].toSorted());
  });

  test('that is too large, or holds a client that it has no use for, is found', () => {
    const budget = { bytes: 100, without: ['@google-cloud/compute'] };
    expect(budgetFindings('discovery', budget, contents(100, 'functions/discovery/index.ts'))).toEqual([]);
    expect(budgetFindings('discovery', budget, contents(101, 'functions/discovery/index.ts'))).toHaveLength(
      1,
    );
    expect(budgetFindings('discovery', budget, contents(90, COMPUTE))).toHaveLength(1);
    expect(budgetFindings('discovery', budget, contents(90, `node_modules/x/${COMPUTE}`))).toHaveLength(1);
  });

  test('of which nothing is left after the build counts for nothing', () => {
    const inputs = { [COMPUTE]: { bytesInOutput: 0 } };
    expect(
      budgetFindings('x', { bytes: 1, without: ['@google-cloud/compute'] }, { bytes: 1, inputs }),
    ).toEqual([]);
  });

  test('with the description of the whole Compute API is found', () => {
    const budget = { bytes: 20_000_000, without: [] };
    expect(budgetFindings('gc', budget, contents(300_000, PROTOS))).toEqual([]);
    expect(budgetFindings('gc', budget, contents(12_000_000, PROTOS))).toHaveLength(1);
  });

  test('of echo may hold no package at all', () => {
    expect(budgetFindings('echo', BUDGETS.echo, contents(1000, 'shared/app/http.ts'))).toEqual([]);
    expect(budgetFindings('echo', BUDGETS.echo, contents(1000, 'node_modules/zod/index.js'))).toHaveLength(1);
  });
});
