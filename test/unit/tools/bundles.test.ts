/** What is built of the functions, and what is left out of it. */

import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { build } from 'esbuild';
import { afterAll, describe, expect, test } from 'vitest';

import { buildInto } from '#test/tools/build.ts';
import { LEFT_OUT } from '#test/tools/left-out.ts';
import { namedImports } from '#test/tools/named-imports.ts';

const ROOT = join(import.meta.dirname, '../../..');
const folder = mkdtempSync(join(tmpdir(), 'bundles-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('row 26: equal code gives equal zips, byte for byte, wherever it is built', async () => {
  const places = ['one', 'another'].map((place) => join(folder, place, 'echo'));
  for (const place of places) await buildInto('echo', place);
  const [one, another] = places.map((place) => readFileSync(`${place}.zip`));
  expect(one?.length).toBeGreaterThan(1000);
  expect(another?.equals(one ?? Buffer.alloc(0))).toBe(true);
});

describe('what is left out of the bundles', () => {
  test.each(Object.keys(LEFT_OUT))('is still there to be left out: %s', (file) => {
    expect(existsSync(join(ROOT, 'node_modules', file))).toBe(true);
  });

  test('is called by nobody: listeners, bulk writers, listings of collections, pipelines', () => {
    const calls =
      /\.(?:onSnapshot|bulkWriter|listDocuments|listCollections|recursiveDelete|getPartitions|pipeline|bundle|subscription|createTopic)\(/;
    for (const folderName of ['shared/firestore', 'shared/pubsub']) {
      const files = readdirSync(join(ROOT, folderName));
      expect(files.length).toBeGreaterThan(0);
      for (const file of files) expect(readFileSync(join(ROOT, folderName, file), 'utf8')).not.toMatch(calls);
    }
  });
});

test('a CommonJS package that is imported when it is needed has its names', async () => {
  const entry = join(folder, 'named');
  await build({
    stdin: {
      contents: `
        const load = () => import('google-auth-library');
        console.log(Object.keys(await load()).join());`,
      resolveDir: ROOT,
    },
    outdir: entry,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    banner: {
      js: `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);`,
    },
    plugins: [namedImports()],
  });
  const { stdout } = await promisify(execFile)(process.execPath, [join(entry, 'stdin.mjs')]);
  expect(stdout.trim().split(',')).toEqual(
    expect.arrayContaining(['OAuth2Client', 'GoogleAuth', 'Compute', 'default']),
  );
});
