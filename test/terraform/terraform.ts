/** Runs terraform on a copy of the module, so that nothing is left in the tree. */

import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { DIST, FUNCTIONS } from '#test/tools/build.ts';

export const MODULE = join(import.meta.dirname, '../../terraform');

export interface Ran {
  readonly ok: boolean;
  /** Both outputs, as a person would see them. */
  readonly text: string;
  readonly stdout: string;
  /** What went wrong beside that: the error output, and how it ended. */
  readonly stderr: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The provider's schema is large: most of the time would go into looking for garbage in it. */
export const ENVIRONMENT = {
  TF_IN_AUTOMATION: 'true',
  TF_INPUT: '0',
  CHECKPOINT_DISABLE: 'true',
  GOGC: '400',
};
const MAX_OUTPUT = 256 * 1024 * 1024;

/** `undefined` when there is no terraform on the PATH. */
export const terraform = (
  dir: string,
  args: readonly string[],
  env: Environment = process.env,
): Promise<Ran | undefined> =>
  new Promise((resolve) => {
    execFile(
      'terraform',
      [...args],
      { cwd: dir, env: { ...env, ...ENVIRONMENT }, maxBuffer: MAX_OUTPUT },
      (error, stdout, stderr) => {
        resolve(
          error?.code === 'ENOENT'
            ? undefined
            : {
                ok: error === null,
                text: `${stdout}${stderr}`,
                stdout,
                stderr: `${stderr}${error === null ? '' : `\nended with ${error.signal ?? error.code}`}`,
              },
        );
      },
    );
  });

const isSource = (path: string): boolean =>
  !/\/(?:\.terraform(?:\.lock\.hcl)?|[^/]*\.tfstate[^/]*)$/u.test(path);

/** A folder of the repository without what Terraform leaves in it. */
export const copySources = (from: string, to: string): Promise<void> =>
  cp(from, to, { recursive: true, filter: isSource });

/** A zip per function: the built one, or a stand-in where nothing has been built. */
export const copyZips = async (to: string): Promise<void> => {
  await mkdir(to, { recursive: true });
  for (const name of FUNCTIONS) {
    const zip = join(to, `${name}.zip`);
    await cp(join(DIST, `${name}.zip`), zip).catch(() => writeFile(zip, `stand-in for ${name}`));
  }
};

/** A copy of the module with a zip per function in its folder `dist`. */
export const copyModule = async (): Promise<{ readonly dir: string; remove(): Promise<void> }> => {
  const dir = await mkdtemp(join(tmpdir(), 'egress-terraform-'));
  await copySources(MODULE, dir);
  await copyZips(join(dir, 'dist'));
  return { dir, remove: () => rm(dir, { recursive: true, force: true }) };
};

/** What terraform says when no provider can be had, as opposed to a module that is wrong. */
const NO_PROVIDER =
  /Failed to (?:query available provider packages|install provider)|Invalid provider registry host/u;

export const lacksProvider = ({ ok, text }: Ran): boolean => !ok && NO_PROVIDER.test(text);
