import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

import { describe, expect, test } from 'vitest';

import { DOCUMENTS, generateDocument, withSections } from '#test/tools/generate-docs.ts';
import { parseBlocks } from '#test/tools/hcl-blocks.ts';
import { atRest, leasesPerMillion, linesOf } from '#test/tools/cost.ts';

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

const total = (proxies: number) => linesOf(atRest(proxies)).reduce((sum, { cost }) => sum + cost, 0);

test('costs grow with the fleet, and the machines are most of them', () => {
  const machines = linesOf(atRest(1000)).filter(({ what }) => what.startsWith('The proxies'));
  expect(total(100)).toBeLessThan(total(1000));
  expect(machines.reduce((sum, { cost }) => sum + cost, 0) / total(1000)).toBeGreaterThan(0.9);
  expect(leasesPerMillion()).toBeLessThan(10);
});
