/** `.local/env`: where the running stack is, in dotenv syntax, there exactly while it runs. */

import { mkdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const FOLDER = '.local';

const quoted = (value: string): string => `'${value.replaceAll("'", String.raw`'\''`)}'`;

const alive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

/** Dotenv and POSIX shell syntax at once. */
export const formatEnv = (values: Readonly<Record<string, string>>): string =>
  Object.entries(values)
    .map(([key, value]) => `${key}=${quoted(value)}\n`)
    .join('');

export interface EnvFile {
  readonly path: string;
  write(values: Readonly<Record<string, string>>): Promise<void>;
  /** Takes away everything that this object made. */
  remove(): Promise<void>;
}

/** Claims the clone for one stack. Throws when another one is running here. */
export const claimEnvFile = async (root: string): Promise<EnvFile> => {
  const path = join(root, FOLDER, 'env');
  const pidFile = join(root, FOLDER, 'stack.pid');
  const pid = Number(await readFile(pidFile, 'utf8').catch(() => ''));
  if (pid > 0 && alive(pid)) {
    throw new Error(
      `a stack is already running from this clone (process ${pid}); stop it first, or use another clone`,
    );
  }
  await mkdir(dirname(path), { recursive: true });
  await writeFile(pidFile, String(process.pid));
  return {
    path,
    write: (values) => writeFile(path, formatEnv(values), { mode: 0o600 }),
    async remove() {
      await rm(path, { force: true });
      await rm(pidFile, { force: true });
      // Reports of tests may live there too; then it stays.
      await rmdir(dirname(path)).catch(() => undefined);
    },
  };
};
