/** One instance of a deployed bundle, from its start to its first answers, as a caller sees them. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';

import { pause } from '#shared/app/wait.ts';
import { claimPort } from '#test/services/ports.ts';

const FRAMEWORK = join(
  import.meta.dirname,
  '../../../node_modules/@google-cloud/functions-framework/build/src/main.js',
);
const LOOK_MS = 2;
const START_MS = 30_000;

export interface Subject {
  /** The folder with `index.js`. */
  readonly source: string;
  readonly target: string;
  readonly env: Readonly<Record<string, string>>;
  /** What is waited for once the instance serves on `port`. */
  readonly second?: (port: number) => Promise<void>;
}

export interface Start {
  /** Milliseconds from the start of the process to the first 200 of `GET /health`, and of `second`. */
  readonly served: number;
  readonly answered: number;
  /** Resident memory after both, in bytes. */
  readonly memory: number;
}

/** One request; 0 where there is no answer. */
export const statusOf = (port: number, method: string, path: string): Promise<number> =>
  new Promise((resolve) => {
    const call = request({ host: '127.0.0.1', port, method, path, agent: false }, (response) => {
      response.resume();
      response.once('end', () => resolve(response.statusCode ?? 0));
    });
    call.once('error', () => resolve(0));
    call.end();
  });

export const untilAnswered = async (port: number, path: string): Promise<void> => {
  const deadline = performance.now() + START_MS;
  while ((await statusOf(port, 'GET', path)) !== 200) {
    if (performance.now() > deadline) throw new Error(`GET ${path} was not answered`);
    await pause(LOOK_MS);
  }
};

const memoryOf = async (pid: number): Promise<number> => {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024;
};

/** Starts it, asks, and ends it. */
export const startOnce = async ({ source, target, env, second }: Subject): Promise<Start> => {
  const claim = await claimPort();
  const began = performance.now();
  const child = spawn(process.execPath, [FRAMEWORK, `--source=${source}`, `--target=${target}`], {
    env: { PATH: process.env['PATH'], NODE_ENV: 'production', ...env, PORT: String(claim.port) },
    stdio: 'ignore',
  });
  const ended = once(child, 'exit');
  try {
    await untilAnswered(claim.port, '/health');
    const served = performance.now() - began;
    await second?.(claim.port);
    const answered = performance.now() - began;
    return { served, answered, memory: await memoryOf(child.pid ?? 0) };
  } finally {
    child.kill('SIGKILL');
    await ended;
    await claim.release();
  }
};
