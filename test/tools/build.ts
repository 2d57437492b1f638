/** Builds what is deployed: one folder and one zip per function, each with only its own clients inside, within its budget. */

import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { build } from 'esbuild';
import { zipSync } from 'fflate';
import { z } from 'zod';

import { BUDGETS, budgetFindings } from './budgets.ts';
import { fingerprint } from './fingerprint.ts';
import { prunedComputeProtos } from './prune-protos.ts';

const ROOT = join(import.meta.dirname, '../..');
export const DIST = join(ROOT, 'dist');

export const FUNCTIONS = ['provision', 'health', 'discovery', 'gc', 'echo'] as const;
export const DEPLOYABLES = [...FUNCTIONS, 'watcher'] as const;
export type Deployable = (typeof DEPLOYABLES)[number];

/** Registration must meet the framework that serves it, so that one is installed beside the bundle and not put into it. */
const FRAMEWORK = '@google-cloud/functions-framework';

/** Zip entries carry this time, so that equal code gives equal bytes. */
const EPOCH = new Date('1980-01-02T00:00:00Z');

const packageSchema = z.object({ version: z.string(), dependencies: z.record(z.string(), z.string()) });

const manifest = (name: Deployable, root: z.infer<typeof packageSchema>): string => {
  const framework = root.dependencies[FRAMEWORK];
  const dependencies = name === 'watcher' || !framework ? {} : { [FRAMEWORK]: framework };
  return `${JSON.stringify({ name, version: root.version, private: true, main: 'index.js', type: 'commonjs', engines: { node: '>=24' }, dependencies }, null, 2)}\n`;
};

const bundle = async (name: Deployable): Promise<void> => {
  const { metafile } = await build({
    entryPoints: [join(ROOT, 'functions', name, 'index.ts')],
    outfile: join(DIST, name, 'index.js'),
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'cjs',
    external: [FRAMEWORK],
    legalComments: 'none',
    plugins: [prunedComputeProtos(['Instances', 'ZoneOperations', 'Disks'])],
    logLevel: 'warning',
    sourcemap: false,
    // Less to read at every start; names stay, so that a stack can be read too.
    minifyWhitespace: true,
    minifySyntax: true,
    metafile: true,
  });
  const findings = Object.values(metafile.outputs).flatMap((output) =>
    budgetFindings(name, BUDGETS[name], output),
  );
  if (findings.length > 0) throw new Error(findings.join('\n'));
};

const archive = async (name: Deployable): Promise<void> => {
  const files: Record<string, Uint8Array> = {};
  for (const file of ['index.js', 'package.json']) files[file] = await readFile(join(DIST, name, file));
  await writeFile(join(DIST, `${name}.zip`), zipSync(files, { mtime: EPOCH, os: 3, attrs: 0o100644 << 16 }));
};

/** Everything that ends up in a bundle, or decides how. The lockfile stands for what is installed. */
const INPUTS = ['functions', 'shared', 'package.json', 'package-lock.json', 'test/tools'];
const STAMP = join(DIST, 'built-from');

const buildAnew = async (): Promise<void> => {
  const root = packageSchema.parse(JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')));
  await mkdir(DIST, { recursive: true });
  await Promise.all(
    DEPLOYABLES.map(async (name) => {
      await rm(join(DIST, name), { recursive: true, force: true });
      await bundle(name);
      await writeFile(join(DIST, name, 'package.json'), manifest(name, root));
      await archive(name);
    }),
  );
};

/** Builds every deployable into `dist/`: the folders that run, and beside each the zip that Terraform uploads. */
export const buildAll = async (): Promise<void> => {
  const now = await fingerprint(ROOT, INPUTS);
  if ((await readFile(STAMP, 'utf8').catch(() => '')) === now) return;
  await rm(STAMP, { force: true });
  await buildAnew();
  await writeFile(STAMP, now);
};

if (import.meta.main) await buildAll();
