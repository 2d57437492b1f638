import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

import { describe, expect, test } from 'vitest';

import { DOCUMENTS, generateDocument, withSections } from '#test/tools/generate-docs.ts';
import { parseBlocks } from '#test/tools/hcl-blocks.ts';
import { readCounts } from '#test/tools/cost-counts.ts';
import { changeCost, costTables, leasesCost, linesOf, type Line } from '#test/tools/cost.ts';

const ROOT = join(import.meta.dirname, '../../..');

describe('generated tables', () => {
  test.each(DOCUMENTS)('of terraform/%s are up to date (npm run generate)', async (name) => {
    expect(await generateDocument(name)).toBe(await readFile(join(ROOT, 'terraform', name), 'utf8'));
  });

  test('name every variable and output of the module', async () => {
    for (const file of ['variables.tf', 'outputs.tf']) {
      const text = await readFile(join(ROOT, 'terraform', file), 'utf8');
      const names = [...text.matchAll(/^(?:variable|output) "(\w+)"/gm)].map(([, name]) => name);
      expect(parseBlocks(text).map(({ name }) => name)).toEqual(names);
    }
  });

  test('cannot lose their place', () => {
    const all = new Map([['x', 'new']]);
    expect(withSections('a\n<!-- generated: x -->\nold\n<!-- end: x -->\nb', all)).toBe(
      'a\n<!-- generated: x -->\n\nnew\n\n<!-- end: x -->\nb',
    );
    expect(() => withSections('<!-- generated: x -->\n', all)).toThrow('the section x');
    expect(() => withSections('<!-- generated: y -->\n<!-- end: y -->', all)).toThrow('the section y');
  });
});

test('a variable is read with its description, its attributes and their defaults', () => {
  const text = `variable "plain" {
  description = "One \\"word\\"."
  type        = string
}

variable "nested" {
  description = "Two."
  type = object({
    must = string
    may  = optional(number, 3)
    some = optional(list(string))
  })
  default = {}
}
`;
  expect(parseBlocks(text)).toEqual([
    { name: 'plain', description: 'One "word".', attributes: ['string'], required: true },
    {
      name: 'nested',
      description: 'Two.',
      attributes: ['`must`', '`may` (3)', '`some` (optional)'],
      required: false,
    },
  ]);
  expect(() => parseBlocks('output "x" {\n  value = 1\n}\n')).toThrow('x has no description');
});

const sum = (lines: readonly Line[]): number => lines.reduce((all, { cost }) => all + cost, 0);

describe('costs', () => {
  test('were counted for fleets, changes and leases, and grow with the fleet', async () => {
    const { atRest, changes, leases } = await readCounts();
    const totals = ['100', '1000', '10000'].map((size) => {
      const { health, gc } = atRest[size] ?? {};
      return health && gc ? sum(linesOf(Number(size), { health, gc })) : Number.NaN;
    });
    expect(totals).toEqual(totals.toSorted((a, b) => a - b));
    expect(totals[0]).toBeGreaterThan(0);
    expect(Object.keys(changes)).toEqual(['created', 'replaced', 'deleted']);
    expect(Object.keys(leases)).toEqual(['alone', 'crowded']);
  });

  test('are operations times prices', () => {
    const rest = {
      health: { shards: 1, reads: 95, writes: 1, probes: 100, probeBytes: 0, seconds: 0 },
      gc: { reads: 5, writes: 0, lists: 1, seconds: 0, memoryMiB: 0 },
    };
    const [reads, writes] = linesOf(100, rest);
    expect(reads?.cost).toBeCloseTo((100 * 43_800 * 0.03) / 100_000);
    expect(writes?.cost).toBeCloseTo((43_800 * 0.09) / 100_000);
    expect(changeCost({ reads: 0, writes: 10, deletes: 0, messages: 0, computeCalls: 9 })).toBeCloseTo(0.009);
    expect(leasesCost({ reads: 0, writes: 3000, requests: 0 })).toBeCloseTo(2.7);
  });

  test('of nothing that was counted are tables of nothing, not of guesses', () => {
    expect(costTables({ atRest: {}, changes: {}, leases: {} })).not.toMatch(/\d proxies/);
  });
});
