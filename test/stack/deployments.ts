/** Cloud Run's part: runs the built bundles, and starts an instance that ended again. */

import { join } from 'node:path';
import { request } from 'node:http';

import { pause } from '#shared/app/wait.ts';
import { claimPort, type PortClaim } from '#test/services/ports.ts';
import { startProcess, waitUntilReady, type ManagedProcess } from '#test/services/process.ts';
import { DIST, FUNCTIONS, type Deployable } from '#test/tools/build.ts';

const ROOT = join(import.meta.dirname, '../..');
const FRAMEWORK = join(ROOT, 'node_modules/@google-cloud/functions-framework/build/src/main.js');
const START_MS = 60_000;
/** A call that is still under way when the stack ends is nobody's any more. */
const STOP_MS = 2000;

export interface DeploymentOptions {
  readonly name: Deployable;
  readonly env: Readonly<Record<string, string>>;
  readonly runDir: string;
  readonly log: (line: string) => void;
}

export interface Deployment {
  readonly name: Deployable;
  /** `http://127.0.0.1:port`, the same for every instance. */
  readonly url: string;
  /** Process id of the instance that runs now. */
  pid(): number;
  /** Kills the running instance as a platform may; a new one follows by itself. */
  kill(signal: 'SIGKILL' | 'SIGTERM'): void;
  /** Log lines of all instances. */
  readonly logFile: string;
  stop(): Promise<void>;
}

const isFunction = (name: Deployable): boolean => FUNCTIONS.some((known) => known === name);

const commandLine = (name: Deployable): readonly string[] =>
  isFunction(name)
    ? [FRAMEWORK, `--source=${join(DIST, name)}`, `--target=${name}`]
    : [join(DIST, name, 'index.js')];

/** A deployable is up when it answers at all on its own health path. */
const answers = (port: number, path: string, signal: AbortSignal): Promise<boolean> =>
  new Promise((resolve, reject) => {
    const call = request({ host: '127.0.0.1', port, path, signal, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode !== undefined && response.statusCode < 500);
    });
    call.once('error', reject);
    call.end();
  });

const startInstance = async (options: DeploymentOptions, port: number): Promise<ManagedProcess> => {
  const instance = await startProcess({
    name: options.name,
    command: process.execPath,
    args: commandLine(options.name),
    env: { PATH: process.env['PATH'], ...options.env, PORT: String(port), NODE_ENV: 'production' },
    logFile: join(options.runDir, `${options.name}.log`),
  });
  const path = isFunction(options.name) ? '/health' : '/live';
  await waitUntilReady(instance, { probe: (signal) => answers(port, path, signal), timeoutMs: START_MS });
  return instance;
};

const supervise = (first: ManagedProcess, options: DeploymentOptions, claim: PortClaim): Deployment => {
  const ended = new AbortController();
  let current = first;
  const loop = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      await current.exited;
      if (ended.signal.aborted) return;
      options.log(`${options.name} ended; starting it again`);
      await current.stop();
      await pause(100, ended.signal);
      current = await startInstance(options, claim.port).catch(async (error: unknown) => {
        options.log(`${options.name} did not start again: ${String(error)}`);
        await pause(2000, ended.signal);
        return current;
      });
    }
  };
  const looping = loop();
  return {
    name: options.name,
    url: `http://127.0.0.1:${claim.port}`,
    pid: () => current.pid,
    kill: (signal) => process.kill(current.pid, signal),
    logFile: first.logFile,
    async stop() {
      ended.abort();
      await current.stop(STOP_MS);
      await looping;
      await current.stop(STOP_MS);
      await claim.release();
    },
  };
};

/** Starts one instance and waits until it serves. */
export const deploy = async (options: DeploymentOptions): Promise<Deployment> => {
  const claim = await claimPort();
  try {
    return supervise(await startInstance(options, claim.port), options, claim);
  } catch (error) {
    await claim.release();
    throw error;
  }
};
