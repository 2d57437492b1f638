/** Child processes that are watched, that end when asked to, and that never outlive this one. */

import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';

import { pause } from '#shared/app/wait.ts';

export interface ProcessSpec {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** The whole environment of the child; default this process's own. */
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  /** Standard output and error are appended here. */
  readonly logFile: string;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface ManagedProcess {
  readonly name: string;
  readonly pid: number;
  readonly logFile: string;
  /** Resolves when the process has ended, for whatever reason; never rejects. */
  readonly exited: Promise<Exit>;
  running(): boolean;
  /** SIGTERM, `graceMs` (default 5,000), then SIGKILL to the whole group; resolves when nothing of it is left. */
  stop(graceMs?: number): Promise<void>;
}

const live = new Set<number>();
let guarded = false;

const signalGroup = (pid: number, signal: NodeJS.Signals | 0): boolean => {
  try {
    process.kill(-pid, signal);
    return true;
  } catch {
    return false;
  }
};

/** An exit that skipped `stop` (an exception, process.exit) still takes the children along. */
const killAtExit = (): void => {
  if (guarded) return;
  guarded = true;
  process.on('exit', () => {
    for (const pid of live) signalGroup(pid, 'SIGKILL');
  });
};

let ending = false;

/** For a program that was told to end while things start: asks all children to end, and lets no more be started. */
export const endProcesses = (): void => {
  ending = true;
  for (const pid of live) signalGroup(pid, 'SIGTERM');
};

let deathSignal: boolean | undefined;
const hasDeathSignal = (): boolean => {
  deathSignal ??= spawnSync('setpriv', ['--pdeathsig', 'KILL', 'true'], { stdio: 'ignore' }).status === 0;
  return deathSignal;
};

/*
 * The kernel kills the child when its parent dies, SIGKILL included. Each link execs the next one, so it stays a single
 * process; the shell's check covers a parent that died before the request was in place. The request belongs to the
 * thread that spawned: call from the main thread.
 */
const guardedCommand = (spec: ProcessSpec): readonly [string, readonly string[]] => {
  if (!hasDeathSignal()) return [spec.command, spec.args];
  const check = 'test "$PPID" = "$0" || exit 125; exec "$@"';
  return [
    'setpriv',
    ['--pdeathsig', 'KILL', 'sh', '-c', check, String(process.pid), spec.command, ...spec.args],
  ];
};

export const describeExit = ({ code, signal }: Exit): string =>
  signal === null ? `exit code ${code}` : `signal ${signal}`;

/** The last `lines` lines of a log; empty when there is none. */
export const tail = (file: string, lines = 20): string => {
  try {
    return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-lines).join('\n');
  } catch {
    return '';
  }
};

const spawned = async (child: ChildProcess, name: string): Promise<number> => {
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', (cause) => reject(new Error(`${name} could not be started`, { cause })));
  });
  if (child.pid === undefined) throw new Error(`${name} has no process id`);
  return child.pid;
};

/** Bounded, since a killed process that nobody has reaped yet still counts as a member of its group. */
const groupEnded = async (pid: number): Promise<void> => {
  const deadline = performance.now() + 1_000;
  while (signalGroup(pid, 0) && performance.now() < deadline) await pause(10);
};

const stopGroup = async (pid: number, exited: Promise<Exit>, graceMs: number): Promise<void> => {
  const ended = new AbortController();
  void exited.then(() => ended.abort());
  signalGroup(pid, 'SIGTERM');
  await pause(graceMs, ended.signal);
  // Also when the leader has ended: what it started may still be there.
  signalGroup(pid, 'SIGKILL');
  await exited;
  await groupEnded(pid);
};

/** Starts a program in a process group of its own; rejects when it cannot be started at all. */
export const startProcess = async (spec: ProcessSpec): Promise<ManagedProcess> => {
  if (ending) throw new Error(`${spec.name} is not started any more`);
  killAtExit();
  const [command, args] = guardedCommand(spec);
  const output = openSync(spec.logFile, 'a', 0o600);
  const child = spawn(command, args, {
    detached: true,
    stdio: ['ignore', output, output],
    env: spec.env ?? process.env,
    ...(spec.cwd === undefined ? {} : { cwd: spec.cwd }),
  });
  closeSync(output);
  const exited = new Promise<Exit>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
  const pid = await spawned(child, spec.name);
  live.add(pid);
  void exited.then(() => signalGroup(pid, 0) || live.delete(pid));
  const running = (): boolean => child.exitCode === null && child.signalCode === null;
  let stopping: Promise<void> | undefined;
  const stop = (graceMs = 5_000): Promise<void> => {
    stopping ??= live.has(pid)
      ? stopGroup(pid, exited, graceMs).finally(() => live.delete(pid))
      : Promise.resolve();
    return stopping;
  };
  return { name: spec.name, pid, logFile: spec.logFile, exited, running, stop };
};

export interface Readiness {
  /** True when the process serves; an error counts as "not yet". */
  readonly probe: (signal: AbortSignal) => Promise<boolean>;
  readonly timeoutMs: number;
}

const PROBE_MS = 2_000;
const BETWEEN_PROBES_MS = 50;

const failure = (child: ManagedProcess, what: string, cause: unknown): Error => {
  const log = tail(child.logFile);
  const shown = log === '' ? 'it wrote nothing' : `the end of ${basename(child.logFile)}:\n${log}`;
  return new Error(`${child.name} ${what}; ${shown}`, cause === undefined ? {} : { cause });
};

/** Resolves when the probe succeeds; an early exit or the deadline stops the process and rejects with its last output. */
export const waitUntilReady = async (child: ManagedProcess, readiness: Readiness): Promise<void> => {
  const deadline = performance.now() + readiness.timeoutMs;
  const ended = new AbortController();
  void child.exited.then(() => ended.abort());
  let last: unknown;
  while (performance.now() < deadline && child.running()) {
    try {
      const signal = AbortSignal.any([ended.signal, AbortSignal.timeout(PROBE_MS)]);
      if (await readiness.probe(signal)) return;
      last = undefined;
    } catch (error) {
      last = error;
    }
    await pause(BETWEEN_PROBES_MS, ended.signal);
  }
  const exit = child.running() ? undefined : await child.exited;
  await child.stop(1_000);
  if (exit) throw failure(child, `ended while it was starting (${describeExit(exit)})`, undefined);
  throw failure(child, `was not ready after ${readiness.timeoutMs / 1000} s`, last);
};
