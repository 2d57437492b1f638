import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';

import { freePort } from '#test/services/ports.ts';

import { INSTALLATION, openStage, type Stage } from './watcher/stage.ts';

const ENTRY = join(import.meta.dirname, '../../functions/watcher/index.ts');

let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
});
afterAll(() => stage.close());

const run = (env: Readonly<Record<string, string>>) => {
  const child: ChildProcess = spawn(process.execPath, [ENTRY], {
    env: { PATH: process.env['PATH'], METADATA_SERVER_DETECTION: 'none', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      output[name] += text;
    });
  }
  const ended = once(child, 'close').then(([code]: unknown[]) => code);
  return { child, output, ended };
};

const status = async (port: number, path: string): Promise<number | undefined> =>
  fetch(`http://127.0.0.1:${port}${path}`).then(
    (response) => response.status,
    () => undefined,
  );

describe('the watcher’s process', () => {
  test('serves /live and /ready, forwards, and ends with 0 on SIGTERM', async () => {
    const port = await freePort();
    const { child, output, ended } = run({
      GOOGLE_CLOUD_PROJECT: stage.projectId,
      INSTALLATION_ID: INSTALLATION,
      PROXY_NAMESPACES: stage.namespace,
      KUBECONFIG: inject('cluster').kubeconfigs.watcher,
      PUBSUB_EMULATOR_HOST: inject('emulators').pubsub,
      PORT: String(port),
    });
    await vi.waitUntil(async () => (await status(port, '/ready')) === 200, { timeout: 40_000 });
    expect(await status(port, '/live')).toBe(200);
    const { name } = (await stage.create()).metadata;
    await vi.waitUntil(() => stage.reasons(name).length > 0, { timeout: 20_000 });
    const asked = performance.now();
    child.kill('SIGTERM');
    expect(await ended).toBe(0);
    expect(performance.now() - asked).toBeLessThan(5000);
    expect(output.stdout).toContain('"metric":"watcher_nudges"');
    expect(output.stderr).toBe('');
  });

  test('refuses to start with a configuration that is wrong, and names every problem', async () => {
    const { output, ended } = run({ INSTALLATION_ID: 'Not Valid', PROXY_NAMESPACES: 'a,*' });
    expect(await ended).toBe(1);
    for (const key of ['GOOGLE_CLOUD_PROJECT', 'INSTALLATION_ID', 'PROXY_NAMESPACES']) {
      expect(output.stderr).toContain(key);
    }
  });

  test('refuses to start without its cluster', async () => {
    const { output, ended } = run({
      GOOGLE_CLOUD_PROJECT: stage.projectId,
      INSTALLATION_ID: INSTALLATION,
      PROXY_NAMESPACES: '*',
      KUBECONFIG: '/nowhere/kubeconfig',
    });
    expect(await ended).toBe(1);
    expect(output.stderr).toContain('/nowhere/kubeconfig');
  });
});
