import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { CRD_FILE, generateTypes, TYPES_FILE } from '#test/tools/generate-types.ts';

const crd = await readFile(CRD_FILE, 'utf8');
const SCRIPT = fileURLToPath(new URL('../../tools/generate-types.ts', import.meta.url));

describe('the generated types of a Proxy', () => {
  test('match the CRD', async () => {
    expect(await readFile(TYPES_FILE, 'utf8')).toBe(await generateTypes(crd));
  });

  test('are checked by a command that passes as long as they match', async () => {
    await expect(promisify(execFile)(process.execPath, [SCRIPT, '--check'])).resolves.toMatchObject({
      stderr: '',
    });
  });

  test('fail that command, with the way out, when they do not', async () => {
    await expect(promisify(execFile)(process.execPath, [SCRIPT, '--check', CRD_FILE])).rejects.toThrow(
      'does not match crds/proxy.yaml: run `npm run generate`',
    );
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
  ])('spell %s as the API server returns it', async (_, line) => {
    expect(await generateTypes(crd)).toContain(line);
  });
});
