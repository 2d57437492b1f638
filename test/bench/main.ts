/** `npm run bench [-- NAME …]`: measures on the product, prints a table, writes `.local/bench/<name>.json`. */

import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { reported, table, type Bench, type BenchContext, type Reported } from './figure.ts';

const SUITES = join(import.meta.dirname, 'suites');
const REPORTS = join(import.meta.dirname, '../../.local/bench');

const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

const known = async (): Promise<readonly string[]> =>
  (await readdir(SUITES))
    .filter((file) => file.endsWith('.ts'))
    .map((file) => file.slice(0, -'.ts'.length))
    .toSorted();

const isBench = (value: unknown): value is Bench => typeof value === 'function';

const load = async (name: string): Promise<Bench> => {
  const module: unknown = await import(pathToFileURL(join(SUITES, `${name}.ts`)).href);
  const bench = typeof module === 'object' && module !== null && 'bench' in module ? module.bench : undefined;
  if (!isBench(bench)) throw new Error(`suites/${name}.ts exports no bench`);
  return bench;
};

const run = async (name: string, context: BenchContext): Promise<readonly Reported[]> => {
  say(`\n=== ${name}`);
  const rows = (await (await load(name))(context)).map(reported);
  await mkdir(REPORTS, { recursive: true });
  await writeFile(join(REPORTS, `${name}.json`), `${JSON.stringify(rows, null, 2)}\n`);
  say(`\n${table(rows)}`);
  return rows;
};

/** Soaks are asked for by name: they take as long as they are told to. */
const isRoutine = (name: string): boolean => !name.endsWith('-soak');

const main = async (): Promise<void> => {
  const all = await known();
  const asked = process.argv.slice(2);
  const unknown = asked.filter((name) => !all.includes(name));
  if (unknown.length > 0) throw new Error(`no benchmark ${unknown.join(', ')}; there are: ${all.join(', ')}`);
  const seed = Number(process.env['BENCH_SEED'] ?? Date.now() % 2 ** 31);
  say(`seed ${seed} (BENCH_SEED sets it)`);
  for (const name of asked.length > 0 ? asked : all.filter(isRoutine)) await run(name, { say, seed });
};

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  process.exitCode = 1;
});
