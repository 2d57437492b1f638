/**
 * Boskos, the resource manager of Kubernetes' own test infrastructure, as it is built from its source: the same clients take
 * and give back resources there and leases here, each over HTTP. It runs in its in-memory mode, so that it stores nothing.
 */

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { dirname, join } from 'node:path';

import { z } from 'zod';

import { withLock } from '#test/control-plane/lock.ts';
import { claimPort } from '#test/services/ports.ts';
import {
  describeExit,
  startProcess,
  tail,
  waitUntilReady,
  type ManagedProcess,
} from '#test/services/process.ts';
import { cacheRoot } from '#test/setup/locate.mjs';

import { send, type Client } from './calls.ts';

const SOURCES = join(import.meta.dirname, '../boskos');
const PACKAGE = 'sigs.k8s.io/boskos/cmd/boskos';

const programPath = (): string => {
  const digest = createHash('sha256').update(readFileSync(join(SOURCES, 'go.mod')));
  return join(dirname(cacheRoot(process.env)), `boskos-${digest.digest('hex').slice(0, 12)}`, 'boskos');
};

const build = async (program: string, logFile: string): Promise<void> => {
  const unfinished = `${program}.${process.pid}`;
  const compiler = await startProcess({
    name: 'go build',
    command: 'go',
    args: ['build', '-trimpath', '-buildvcs=false', '-o', unfinished, PACKAGE],
    cwd: SOURCES,
    env: { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-mod=readonly', GOWORK: 'off' },
    logFile,
  });
  const exit = await compiler.exited;
  if (exit.code !== 0) {
    throw new Error(`Boskos could not be built (${describeExit(exit)}):\n${tail(logFile)}`);
  }
  renameSync(unfinished, program);
};

/** Built once into the user's cache, with Go and its module proxy. Resolves with the program. */
export const ensureBoskos = async (runDir: string, say: (line: string) => void): Promise<string> => {
  const program = programPath();
  const waiting = (pid: string): void => say(`Boskos is being built by process ${pid}; waiting for it.`);
  await withLock(program, waiting, async () => {
    if (existsSync(program)) return;
    say('Building Boskos. This happens once and takes some minutes.');
    mkdirSync(dirname(program), { recursive: true });
    await build(program, join(runDir, 'boskos-build.log'));
  });
  return program;
};

const resource = z.object({ name: z.string() });

/** A client of Boskos: leases are resources there, and go back under the name of their owner. */
const clientOf = (url: string, agent: Agent): Client => {
  const post = (path: string, parameters: Readonly<Record<string, string>>) =>
    send(agent, `${url}${path}?${String(new URLSearchParams(parameters))}`, 'POST');
  return {
    async acquire() {
      const wanted = { type: 'proxy', state: 'free', dest: 'busy', owner: 'bench' };
      const { status, text } = await post('/acquire', wanted);
      // Who meets another one there is told to ask again.
      return status === 200
        ? { status: 201, leaseId: resource.parse(JSON.parse(text)).name }
        : { status, leaseId: '' };
    },
    async release(name) {
      const { status } = await post('/release', { name, dest: 'free', owner: 'bench' });
      return status === 200 ? 204 : status;
    },
  };
};

const configOf = (resources: number): string =>
  JSON.stringify({
    resources: [
      {
        type: 'proxy',
        state: 'free',
        names: Array.from({ length: resources }, (_, index) => `proxy-${index}`),
      },
    ],
  });

const ports = async (count: number): Promise<readonly number[]> => {
  const claims = await Promise.all(Array.from({ length: count }, claimPort));
  await Promise.all(claims.map((claim) => claim.release()));
  return claims.map(({ port }) => port);
};

const answers = async (url: string, signal: AbortSignal): Promise<boolean> =>
  (await fetch(`${url}/metric?type=proxy`, { signal })).ok;

export interface Boskos {
  readonly client: Client;
  stop(): Promise<void>;
}

/** A running one with so many free resources. */
export const startBoskos = async (program: string, runDir: string, resources: number): Promise<Boskos> => {
  const config = join(runDir, 'boskos.yaml');
  writeFileSync(config, configOf(resources));
  const [port, health, metrics, profiles] = await ports(4);
  const child: ManagedProcess = await startProcess({
    name: 'boskos',
    command: program,
    args: [
      '--in_memory',
      `--config=${config}`,
      '--log-level=error',
      `--port=${port}`,
      `--health-port=${health}`,
      `--metrics-port=${metrics}`,
      `--pprof-port=${profiles}`,
    ],
    logFile: join(runDir, 'boskos.log'),
  });
  const url = `http://127.0.0.1:${port}`;
  await waitUntilReady(child, { probe: (signal) => answers(url, signal), timeoutMs: 60_000 });
  const agent = new Agent({ keepAlive: true, maxSockets: 128 });
  return {
    client: clientOf(url, agent),
    stop: async () => {
      agent.destroy();
      await child.stop();
    },
  };
};
