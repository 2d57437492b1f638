/** A function as it is deployed: its bundle under the framework, with what the platform does to it before. */

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { afterAll, beforeAll, beforeEach, expect, inject, test, vi } from 'vitest';

import { freePort } from '#test/services/ports.ts';
import { buildInto } from '#test/tools/build.ts';

const ROOT = join(import.meta.dirname, '../..');
const FRAMEWORK = join(ROOT, 'node_modules/@google-cloud/functions-framework/build/src/main.js');
const UNTIL = { timeout: 40_000, interval: 20 };

let folder: string;
let source: string;
beforeAll(async () => {
  mkdirSync(join(ROOT, '.local'), { recursive: true });
  // Under the project, so that the framework is found as it is by a deployed bundle.
  folder = mkdtempSync(join(ROOT, '.local/bundles-'));
  source = join(folder, 'discovery');
  await buildInto('discovery', source);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const start = async () => {
  const port = await freePort();
  const child = spawn(process.execPath, [FRAMEWORK, `--source=${source}`, '--target=discovery'], {
    env: {
      PATH: process.env['PATH'],
      NODE_ENV: 'production',
      NODE_DEBUG_NATIVE: 'COMPILE_CACHE',
      METADATA_SERVER_DETECTION: 'none',
      GOOGLE_CLOUD_PROJECT: 'bundles',
      INSTALLATION_ID: 'bundles',
      PROXY_NAMESPACES: 'crawlers',
      FIRESTORE_EMULATOR_HOST: inject('emulators').firestore,
      PORT: String(port),
    },
  });
  const output = { text: '' };
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output.text += text;
    });
  }
  const get = (path: string): Promise<number> =>
    fetch(`http://127.0.0.1:${port}${path}`).then(
      ({ status }) => status,
      () => 0,
    );
  await vi.waitUntil(async () => (await get('/health')) === 200, UNTIL);
  return {
    get,
    output,
    stop: async () => {
      child.kill('SIGKILL');
      await once(child, 'close');
    },
  };
};
type Instance = Awaited<ReturnType<typeof start>>;

const running = async (work: (instance: Instance) => Promise<void>): Promise<void> => {
  const instance = await start();
  try {
    await work(instance);
  } finally {
    await instance.stop();
  }
};

const cacheOf = (): readonly string[] => {
  const cache = join(source, '.compile-cache');
  return readdirSync(cache, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
};

/** Node.js says so of each file that it need not compile. */
const accepted = (name: string): RegExp => new RegExp(String.raw`/${name}-\w+\.mjs was accepted`);

beforeEach(async () => {
  rmSync(join(source, '.compile-cache'), { recursive: true, force: true });
  await promisify(execFile)(process.execPath, ['warm.mjs'], { cwd: source });
});

test('starts from files that the platform compiled, and reads each when it is first needed', () =>
  running(async ({ get, output }) => {
    expect(output.text).toMatch(accepted('discovery'));
    expect(output.text).not.toMatch(/(?:application|openapi|publisher)-\w+\.mjs/);
    expect(await get('/v1/proxies')).toBe(200);
    expect(output.text).toMatch(accepted('application'));
    expect(output.text).not.toMatch(/(?:openapi|publisher)-\w+\.mjs/);
    expect(await get('/openapi.json')).toBe(200);
    expect(output.text).toMatch(accepted('openapi'));
  }));

test('starts all the same where what was compiled is damaged', async () => {
  const cached = cacheOf();
  expect(cached.length).toBeGreaterThan(5);
  for (const file of cached) writeFileSync(file, 'damaged');
  await running(async ({ get, output }) => {
    expect(await get('/v1/proxies')).toBe(200);
    expect(output.text).not.toContain('.mjs was accepted');
  });
});

test('a file that cannot be read is told by the request that needs it, and the next one tries again', () =>
  running(async ({ get, output }) => {
    const name = readdirSync(source).find((file) => file.startsWith('application-')) ?? 'none';
    renameSync(join(source, name), join(source, 'away'));
    expect(await get('/v1/proxies')).toBe(503);
    expect(await get('/health')).toBe(200);
    expect(output.text).toContain('The function could not be loaded');
    renameSync(join(source, 'away'), join(source, name));
    expect(await get('/v1/proxies')).toBe(200);
  }));
