/** Builds the control plane's programs into the user's cache, once. Run directly, it makes sure that they are there. */

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { pause } from '#shared/app/wait.ts';
import { describeExit, startProcess, tail, type ManagedProcess } from '#test/services/process.ts';

import { withLock } from './lock.ts';
import {
  linkerFlags,
  locateControlPlane,
  PROGRAMS,
  SOURCES,
  type Environment,
  type Program,
  type Programs,
} from '#test/setup/locate.mjs';

export type Say = (line: string) => void;

const PACKAGES: Readonly<Record<Program, string>> = {
  etcd: './etcd',
  'kube-apiserver': 'k8s.io/kubernetes/cmd/kube-apiserver',
  'kube-controller-manager': 'k8s.io/kubernetes/cmd/kube-controller-manager',
};

const PROGRESS_MS = 10_000;

/** Minutes and seconds, as in `4:05`. */
export const elapsed = (ms: number): string => {
  const seconds = Math.floor(ms / 1_000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
};

/** What the compiler is at: packages done so far, or the download that it waits for. */
export const compilerProgress = (log: string): string => {
  const lines = log
    .trimEnd()
    .split('\n')
    .filter((line) => line !== '');
  const last = lines.at(-1) ?? '';
  if (last.startsWith('go: ')) return last.slice(4);
  const compiled = lines.filter((line) => !line.startsWith('go: ')).length;
  return compiled === 0 ? 'working' : `${compiled} packages compiled`;
};

const goEnvironment = (env: Environment): NodeJS.ProcessEnv => ({
  ...env,
  CGO_ENABLED: '0',
  GOFLAGS: '-mod=readonly',
  GOWORK: 'off',
});

const showProgress = async (name: string, build: ManagedProcess, say: Say): Promise<void> => {
  const start = performance.now();
  const ended = new AbortController();
  void build.exited.then(() => ended.abort());
  await pause(PROGRESS_MS, ended.signal);
  while (build.running()) {
    say(
      `  ${name}: ${elapsed(performance.now() - start)}, ${compilerProgress(tail(build.logFile, 100_000))}`,
    );
    await pause(PROGRESS_MS, ended.signal);
  }
};

const failedBuild = (name: string, how: string, logFile: string): Error =>
  new Error(
    [
      `${name} could not be built (${how}). The compiler's last lines:`,
      tail(logFile, 30).replace(/^/gmu, '  | '),
      'What helps: a Go module proxy that can be reached (see `go env GOPROXY`), about 5 GB of free disk space for',
      'modules and compiled packages, 4 GB of memory. Run the command again: what was compiled is kept.',
      `Or set KUBEBUILDER_ASSETS to a folder that has ${PROGRAMS.join(', ')}.`,
    ].join('\n'),
  );

const buildProgram = async (name: Program, directory: string, env: Environment, say: Say): Promise<void> => {
  const start = performance.now();
  const logFile = join(directory, `${name}.log`);
  const flags = linkerFlags(readFileSync(join(SOURCES, 'go.mod'), 'utf8'));
  const build = await startProcess({
    name: 'go build',
    command: 'go',
    args: [
      'build',
      '-v',
      '-trimpath',
      '-buildvcs=false',
      '-ldflags',
      flags,
      '-o',
      join(directory, name),
      PACKAGES[name],
    ],
    cwd: SOURCES,
    env: goEnvironment(env),
    logFile,
  });
  await showProgress(name, build, say);
  const exit = await build.exited;
  if (exit.code !== 0) throw failedBuild(name, describeExit(exit), logFile);
  rmSync(logFile);
  say(`  ${name}: built in ${elapsed(performance.now() - start)}`);
};

/** Renames a complete build into place, so that a half-built one is never found; leftovers of killed builds go. */
const buildAll = async (directory: string, env: Environment, say: Say): Promise<void> => {
  const parent = dirname(directory);
  const unfinished = `.building-${basename(directory)}-`;
  mkdirSync(parent, { recursive: true });
  for (const name of readdirSync(parent)) {
    if (name.startsWith(unfinished)) rmSync(join(parent, name), { recursive: true, force: true });
  }
  const building = mkdtempSync(join(parent, unfinished));
  const discard = (): void => rmSync(building, { recursive: true, force: true });
  process.once('exit', discard);
  try {
    for (const name of PROGRAMS) await buildProgram(name, building, env, say);
    rmSync(directory, { recursive: true, force: true });
    renameSync(building, directory);
  } finally {
    discard();
    process.off('exit', discard);
  }
};

/** The control plane's programs, built when they are nowhere to be found; rejects with what to do when that fails. */
export const ensureControlPlane = async (env: Environment, say: Say): Promise<Programs> => {
  const location = locateControlPlane(env);
  for (const note of location.notes) say(note);
  if (location.found) return location.programs;
  const { directory } = location;
  const waiting = (pid: string): void =>
    say(`The control plane is being built by process ${pid}; waiting for it.`);
  await withLock(directory, waiting, async () => {
    if (locateControlPlane(env).found) return;
    say('Building the Kubernetes control plane. This happens once and takes several minutes.');
    await buildAll(directory, env, say);
    say(`The control plane is in ${directory}`);
  });
  return location.programs;
};

const main = async (): Promise<void> => {
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)
    process.once(signal, () => process.exit(code));
  try {
    await ensureControlPlane(process.env, console.log);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
};

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await main();
