import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { CRD_FILE, generateTypes, run, TYPES_FILE } from '#test/tools/generate-types.ts';

const crd = await readFile(CRD_FILE, 'utf8');
const generated = await generateTypes(crd);

describe('the generated types of a Proxy', () => {
  test('match the CRD', async () => {
    expect(await readFile(TYPES_FILE, 'utf8')).toBe(generated);
  });

  test.each([
    ['pass the check as long as they match', TYPES_FILE, 0, ''],
    [
      'fail the check, with the way out, when they do not',
      CRD_FILE,
      1,
      `${CRD_FILE} does not match crds/proxy.yaml: run \`npm run generate\`.\n`,
    ],
  ])('%s', async (_, file, code, text) => {
    let said = '';
    expect(
      await run(true, file, (complaint) => {
        said += complaint;
      }),
    ).toBe(code);
    expect(said).toBe(text);
  });

  test('follow a new field of the CRD', async () => {
    const edited = crd.replace(
      'cordoned:',
      'paused: { type: boolean, description: New. }\n                cordoned:',
    );
    expect(await generateTypes(edited)).toContain('readonly paused?: boolean;');
  });

  test('are refused for a keyword that would be lost', async () => {
    const edited = crd.replace('maxLeases:\n', 'maxLeases:\n                  nullable: true\n');
    await expect(generateTypes(edited)).rejects.toThrow(/nullable/);
  });

  test.each([
    ['an enum', "readonly provider?: 'gcp' | 'kubernetes';"],
    ['a list', 'readonly zones: readonly string[];'],
    ['a map', 'readonly [k: string]: string;'],
    ['a quantity', 'readonly [k: string]: number | string;'],
    ['a required field', 'readonly machineType: string;'],
    ['an optional field', 'readonly revision?: string;'],
  ])('spell %s as the API server returns it', (_, line) => {
    expect(generated).toContain(line);
  });
});
