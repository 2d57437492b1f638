/** Builds what is deployed: one folder and one zip per function, each with only its own clients inside, within its budget. */

import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { build, type BuildOptions, type Metafile, type Plugin } from 'esbuild';
import { zipSync } from 'fflate';
import { z } from 'zod';

import { BUDGETS, budgetFindings, sizesOf, type Sizes } from './budgets.ts';
import { fingerprint } from './fingerprint.ts';
import { leftOut, restOnly } from './left-out.ts';
import { namedImports } from './named-imports.ts';
import { prunedProtos, type Services } from './prune-protos.ts';

const ROOT = join(import.meta.dirname, '../..');
export const DIST = join(ROOT, 'dist');

export const FUNCTIONS = ['provision', 'health', 'discovery', 'gc', 'echo'] as const;
export const DEPLOYABLES = [...FUNCTIONS, 'watcher'] as const;
export type Deployable = (typeof DEPLOYABLES)[number];

/** Registration must meet the framework that serves it, so that one is installed beside the bundle and not put into it. */
const FRAMEWORK = '@google-cloud/functions-framework';

/** Zip entries carry this time, so that equal code gives equal bytes. */
const EPOCH = new Date('1980-01-02T00:00:00Z');

/** What is called of each API, by the file that describes it. */
const CALLED: Readonly<Record<string, Services>> = {
  '@google-cloud/compute/build/protos/protos.json': {
    'google.cloud.compute.v1.Instances': 'all',
    'google.cloud.compute.v1.ZoneOperations': 'all',
    'google.cloud.compute.v1.Disks': 'all',
  },
  '@google-cloud/firestore-api/build/protos/protos.json': {
    'google.firestore.v1.Firestore': [
      'BatchGetDocuments',
      'RunQuery',
      'RunAggregationQuery',
      'Commit',
      'BeginTransaction',
      'Rollback',
    ],
  },
  '@google-cloud/pubsub-api/build/protos/protos.json': { 'google.pubsub.v1.Publisher': ['Publish'] },
};

const packageSchema = z.object({ version: z.string(), dependencies: z.record(z.string(), z.string()) });
type Package = z.infer<typeof packageSchema>;

const manifest = (name: Deployable, root: Package): string => {
  const common = { name, version: root.version, private: true, engines: { node: '>=24' } };
  const framework = root.dependencies[FRAMEWORK];
  const rest =
    name === 'watcher' || !framework
      ? { main: 'index.js', type: 'commonjs' }
      : {
          main: 'index.mjs',
          type: 'module',
          dependencies: { [FRAMEWORK]: framework },
          scripts: { 'gcp-build': 'node warm.mjs' },
        };
  return `${JSON.stringify({ ...common, ...rest }, null, 2)}\n`;
};

const OPTIONS = {
  absWorkingDir: ROOT,
  bundle: true,
  platform: 'node',
  target: 'node24',
  external: [FRAMEWORK],
  legalComments: 'none',
  plugins: [prunedProtos(CALLED), leftOut(), restOnly(), namedImports()],
  logLevel: 'warning',
  sourcemap: false,
  // Less to read at every start; names stay, so that a stack can be read too.
  minifyWhitespace: true,
  minifySyntax: true,
  metafile: true,
} as const satisfies BuildOptions;

/** What packages of the other kind expect to be there. */
const COMMONJS =
  "import{createRequire as __createRequire}from'node:module';" +
  'const require=__createRequire(import.meta.url),__dirname=import.meta.dirname,__filename=import.meta.filename;';

/** What the platform starts. The cache is enabled only where `warm.ts` filled it, for what is imported afterwards. */
const startOf = (name: Deployable): Plugin => ({
  name: 'start',
  setup: (started) => {
    started.onResolve({ filter: /^start$/ }, () => ({ path: name, namespace: 'start' }));
    started.onLoad({ filter: /./, namespace: 'start' }, () => ({
      contents: `
        import { existsSync } from 'node:fs';
        import { enableCompileCache } from 'node:module';
        const cache = import.meta.dirname + '/.compile-cache';
        if (existsSync(cache)) enableCompileCache(cache);
        await import('./functions/${name}/index.ts');`,
      resolveDir: ROOT,
    }));
  },
});

/** Modules of their own kind, since only those can be split: what a start does not need is in files of its own. */
const bundleFunction = async (name: Deployable, outdir: string): Promise<Metafile> => {
  const { metafile } = await build({
    ...OPTIONS,
    plugins: [startOf(name), ...OPTIONS.plugins],
    entryPoints: [
      { in: 'start', out: 'index' },
      { in: join(import.meta.dirname, 'warm.ts'), out: 'warm' },
    ],
    outdir,
    entryNames: '[name]',
    chunkNames: '[name]-[hash]',
    outExtension: { '.js': '.mjs' },
    format: 'esm',
    splitting: true,
    banner: { js: COMMONJS },
  });
  return metafile;
};

/** One file, that runs without anything beside it. */
const bundleProgram = async (name: Deployable, outdir: string): Promise<Metafile> => {
  const { metafile } = await build({
    ...OPTIONS,
    entryPoints: [join(ROOT, 'functions', name, 'index.ts')],
    outfile: join(outdir, 'index.js'),
    format: 'cjs',
  });
  return metafile;
};

const bundle = async (name: Deployable, folder: string): Promise<Sizes> => {
  const metafile = await (name === 'watcher' ? bundleProgram : bundleFunction)(name, folder);
  const findings = budgetFindings(name, BUDGETS[name], metafile.outputs);
  if (findings.length > 0) throw new Error(findings.join('\n'));
  return sizesOf(metafile.outputs);
};

const archive = async (folder: string): Promise<Uint8Array> => {
  const files: Record<string, Uint8Array> = {};
  for (const file of (await readdir(folder)).toSorted()) files[file] = await readFile(join(folder, file));
  return zipSync(files, { mtime: EPOCH, os: 3, attrs: 0o100644 << 16 });
};

const readManifest = async (): Promise<Package> =>
  packageSchema.parse(JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')));

/** Builds one into `folder`, and its zip beside that. Throws when it does not keep to its budget. */
export const buildInto = async (name: Deployable, folder: string): Promise<Sizes> => {
  await rm(folder, { recursive: true, force: true });
  const sizes = await bundle(name, folder);
  await writeFile(join(folder, 'package.json'), manifest(name, await readManifest()));
  await writeFile(`${folder}.zip`, await archive(folder));
  return sizes;
};

/** Everything that ends up in a bundle, or decides how. The lockfile stands for what is installed. */
const INPUTS = ['functions', 'shared', 'package.json', 'package-lock.json', 'test/tools'];
const STAMP = join(DIST, 'built-from');
/** `Sizes` by deployable, of what was built last. */
export const SIZES = join(DIST, 'sizes.json');

const buildAnew = async (): Promise<void> => {
  await mkdir(DIST, { recursive: true });
  const sizes = await Promise.all(
    DEPLOYABLES.map(async (name) => [name, await buildInto(name, join(DIST, name))] as const),
  );
  await writeFile(SIZES, `${JSON.stringify(Object.fromEntries(sizes), null, 2)}\n`);
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
