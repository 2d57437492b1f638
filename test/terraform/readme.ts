/** Runs the commands of a README in a shell that finds nothing but what it may run. */

import { execFile } from 'node:child_process';
import { chmod, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { findOnPath } from '#test/setup/locate.mjs';

/** Commands that stand in one fenced block, without what indents it. */
export interface Block {
  /** The heading of the second level that it is under. */
  readonly section: string;
  readonly script: string;
}

const HEADING_OR_BLOCK = /^## (?<section>.+)$|^(?<indent> *)```sh\n(?<body>[^]*?\n)\k<indent>```$/gm;

/** The `sh` blocks of a Markdown text, in their order. */
export const shellBlocks = (markdown: string): readonly Block[] => {
  let section = '';
  const blocks: Block[] = [];
  for (const { groups } of markdown.matchAll(HEADING_OR_BLOCK)) {
    section = groups?.['section'] ?? section;
    const body = groups?.['body'];
    const indent = groups?.['indent'] ?? '';
    if (body !== undefined)
      blocks.push({ section, script: body.replaceAll(new RegExp(`^${indent}`, 'gm'), '') });
  }
  return blocks;
};

/** A program that only notes how it was called. */
export interface Stub {
  /** Why it cannot run here. */
  readonly why: string;
  /** What it prints, by the beginning of its arguments. */
  readonly prints?: Readonly<Record<string, string>>;
  /** What runs in its place, if anything does. */
  readonly runs?: string;
}

export interface ShellOptions {
  /** Where it keeps its own files; must exist. */
  readonly dir: string;
  /** Where sections begin. */
  readonly root: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Programs that run. */
  readonly programs: readonly string[];
  readonly stubs: Readonly<Record<string, Stub>>;
}

/** A call of a stub. */
export interface StubCall {
  readonly program: string;
  readonly args: readonly string[];
  readonly cwd: string;
}

export interface BlockRun {
  readonly ok: boolean;
  readonly text: string;
  readonly calls: readonly StubCall[];
}

export interface Shell {
  /** Runs a script where the one before it ended, with its variables; ends at the first command that fails. */
  run(script: string): Promise<BlockRun>;
  /** Goes back to where sections begin. */
  restart(): Promise<void>;
}

const stubScript = (name: string, log: string, { prints = {}, runs }: Stub): string =>
  [
    '#!/bin/sh',
    `{ printf '%s\\037' ${name} "$PWD" "$@"; printf '\\036'; } >> '${log}'`,
    'case "$*" in',
    ...Object.entries(prints).map(([start, answer]) => `  '${start}'*) echo '${answer}' ;;`),
    'esac',
    runs === undefined ? '' : `exec ${runs} "$@"`,
    '',
  ].join('\n');

const callsIn = (log: string): readonly StubCall[] =>
  log
    .split('\u001e')
    .filter((line) => line !== '')
    .map((line) => {
      const [program = '', cwd = '', ...args] = line.split('\u001f').slice(0, -1);
      return { program, args, cwd };
    });

const bash = (script: string, env: ShellOptions['env']): Promise<{ ok: boolean; text: string }> =>
  new Promise((resolve) => {
    const options = { env, maxBuffer: 64 * 1024 * 1024 };
    execFile('/bin/bash', ['--norc', '-c', script], options, (error, stdout, stderr) =>
      resolve({ ok: error === null, text: `${stdout}${stderr}` }),
    );
  });

/** A shell whose PATH holds the named programs and the stubs, and nothing else: any other command fails. */
export const openShell = async (options: ShellOptions): Promise<Shell> => {
  const { dir, root, env, programs, stubs } = options;
  const [bin, log, state] = ['bin', 'calls', 'state'].map((name) => join(dir, name));
  if (bin === undefined || log === undefined || state === undefined) throw new Error('no folder');
  await mkdir(bin);
  for (const name of programs) {
    const path = findOnPath(name, process.env);
    if (path === undefined) throw new Error(`there is no ${name} on the PATH`);
    await symlink(path, join(bin, name));
  }
  for (const [name, stub] of Object.entries(stubs)) {
    await writeFile(join(bin, name), stubScript(name, log, stub));
    await chmod(join(bin, name), 0o755);
  }
  const restart = (): Promise<void> => writeFile(state, `cd '${root}'\n`);
  await restart();
  return {
    restart,
    run: async (script) => {
      await rm(log, { force: true });
      const keep = `trap '{ declare -px; echo "cd \\"$PWD\\""; } > "${state}"' EXIT`;
      // In `a && b` a missing command does not end the script by itself.
      const missing = `command_not_found_handle() { echo "$1: command not found" >&2; printf '?\\037\\036' >> '${log}'; return 127; }`;
      const ran = await bash(`${missing}\nset -eo pipefail\nset -a\n. '${state}'\n${keep}\n${script}`, {
        ...env,
        PATH: bin,
      });
      const noted = callsIn(await readFile(log, 'utf8').catch(() => ''));
      const calls = noted.filter(({ program }) => program !== '?');
      return { ...ran, ok: ran.ok && calls.length === noted.length, calls };
    },
  };
};
