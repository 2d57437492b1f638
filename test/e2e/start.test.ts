import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from 'vitest';

import { poll, startWorld } from './world.ts';

const ROOT = join(import.meta.dirname, '../..');

interface Run {
  readonly child: ChildProcess;
  /** Everything that it printed so far. */
  output(): string;
  readonly ended: Promise<number | null>;
}

const start = (...options: readonly string[]): Run => {
  const child = spawn(process.execPath, [join(ROOT, 'test/stack/main.ts'), ...options], { cwd: ROOT });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8');
    stream.on('data', (text: string) => {
      output += text;
    });
  }
  const ended = new Promise<number | null>((resolve) => {
    child.once('exit', resolve);
  });
  return { child, output: () => output, ended };
};

/** Processes whose command line mentions a run's own folder, or that descend from it by name. */
const processesOf = (runDir: string): readonly string[] =>
  readdirSync('/proc')
    .filter((entry) => /^\d+$/u.test(entry))
    .flatMap((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
        const environment = readFileSync(`/proc/${pid}/environ`, 'utf8');
        return command.includes(runDir) || environment.includes(runDir) ? [command] : [];
      } catch {
        // It ended while it was looked at.
        return [];
      }
    });

const runDirIn = (env: string): string => /KUBECONFIG='(.*?\/egress-proxies-[^/]+)\//u.exec(env)?.[1] ?? '';

test('npm start -- --exit fetches a page through a leased proxy beside another stack, and leaves nothing', async () => {
  const world = await startWorld('beside');
  try {
    const run = start('--exit');
    expect({ code: await run.ended, output: run.output() }).toMatchObject({ code: 0 });
    expect(run.output()).toContain('page fetched through it');
    expect(existsSync(join(ROOT, '.local/env'))).toBe(false);
    const answer = await fetch(`${world.discoveryUrl}/ready`);
    expect(answer.status).toBe(200);
  } finally {
    await world.stack.stop();
  }
});

test('npm start -- --empty writes .local/env, refuses a second one in the same clone, and ends cleanly on Ctrl-C', async () => {
  const run = start('--empty');
  const envFile = join(ROOT, '.local/env');
  await poll('the stack is up', () => (run.output().includes('The stack is up') ? true : undefined), 120_000);
  const env = readFileSync(envFile, 'utf8');
  for (const key of [
    'KUBECONFIG',
    'DISCOVERY_URL',
    'PROVISION_URL',
    'HEALTH_URL',
    'GC_URL',
    'ECHO_URL',
    'COMPUTE_URL',
    'TARGET_URL',
    'FIRESTORE_EMULATOR_HOST',
    'PUBSUB_EMULATOR_HOST',
    'GOOGLE_CLOUD_PROJECT',
    'INSTALLATION_ID',
  ]) {
    expect(env).toMatch(new RegExp(`^${key}='.+'$`, 'mu'));
  }
  const runDir = runDirIn(env);
  expect(processesOf(runDir).length).toBeGreaterThan(5);

  const second = start('--empty');
  expect(await second.ended).toBe(1);
  expect(second.output()).toContain('already running from this clone');

  run.child.kill('SIGINT');
  expect({ code: await run.ended, output: run.output() }).toMatchObject({ code: 0 });
  expect(processesOf(runDir)).toEqual([]);
  expect(existsSync(runDir)).toBe(false);
  expect(existsSync(envFile)).toBe(false);
});

test('bad options are refused with the usage', async () => {
  const run = start('--nonsense');
  expect(await run.ended).toBe(1);
  expect(run.output()).toContain('--nonsense');
});
