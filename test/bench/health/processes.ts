/** Processes of the benchmark, each on a core of its own where there are two. */

import { execFile, fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { z } from 'zod';

import { makeAuthority, type Authority } from '#test/services/authority.ts';

const portsSchema = z.object({ proxyPort: z.number(), tlsPort: z.number(), blackHolePort: z.number() });
export type Ports = z.output<typeof portsSchema>;

export interface Servers extends Ports {
  readonly authority: Authority;
  stop(): void;
}

/** Without `taskset`, or with one core, a process stays where it is. */
export const pin = async (pid: number | undefined, core: number): Promise<void> => {
  if (pid === undefined || core >= availableParallelism()) return;
  await promisify(execFile)('taskset', ['-cp', String(core), String(pid)]).catch(() => undefined);
};

/** Starts a module of this folder; extra arguments go to Node. */
export const start = (module: string, execArgv: readonly string[] = []): ChildProcess =>
  fork(join(import.meta.dirname, module), { execArgv: [...execArgv] });

/** Servers that are to be believed together have one authority. */
export const startServers = async (among?: Pick<Servers, 'authority'>): Promise<Servers> => {
  const authority = among?.authority ?? (await makeAuthority('Benchmark'));
  const { certPem: cert, keyPem: key } = await authority.issue(['127.0.0.1']);
  const child = start('servers.ts');
  await pin(child.pid, 1);
  child.send({ cert, key });
  const message: readonly unknown[] = await once(child, 'message');
  return { ...portsSchema.parse(message[0]), authority, stop: () => child.disconnect() };
};
