/** `npm test`: every check in order, output as it comes, up to the first failure; ends with the counts of the tests. */

import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { addCounts, closingLine, NO_TESTS, readCounts, type Counts } from './counts.ts';
import { interruptible, runStep, type Step, type StepResult } from './steps.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const REPORTS = join(ROOT, '.local', 'reports');
const PROJECTS = ['unit', 'integration', 'e2e'];
const TERRAFORM = 'test/terraform/check.ts';

const reportOf = (project: string): string => join(REPORTS, `${project}.json`);

const npm = (name: string, script: string): Step => ({
  name,
  command: 'npm',
  args: ['run', '--silent', script],
});

const vitest = (project: string): Step => ({
  name: `${project} tests`,
  command: join(ROOT, 'node_modules', '.bin', 'vitest'),
  args: [
    'run',
    `--project=${project}`,
    '--passWithNoTests',
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${reportOf(project)}`,
  ],
});

const steps = (): readonly Step[] => [
  npm('types', 'types'),
  { name: 'types of the set-up', command: 'node_modules/.bin/tsc', args: ['-p', 'test/setup/tsconfig.json'] },
  npm('lint', 'lint'),
  npm('format', 'format:check'),
  npm('generated files', 'generate:check'),
  npm('build', 'build'),
  ...PROJECTS.map(vitest),
  ...(existsSync(join(ROOT, TERRAFORM))
    ? [{ name: 'Terraform', command: process.execPath, args: [TERRAFORM] }]
    : []),
];

const runAll = async (signal: AbortSignal): Promise<readonly StepResult[]> => {
  const results: StepResult[] = [];
  for (const step of steps()) {
    console.log(`\n=== ${step.name}`);
    const result = await runStep(step, ROOT, signal);
    results.push(result);
    if (!result.passed) break;
  }
  return results;
};

const counts = (): Counts =>
  PROJECTS.map((project) => readCounts(reportOf(project))).reduce(addCounts, NO_TESTS);

const summary = (results: readonly StepResult[]): string =>
  results
    .map(
      ({ name, ms, passed }) =>
        `${(ms / 1_000).toFixed(1).padStart(8)} s  ${name}${passed ? '' : ': FAILED'}`,
    )
    .join('\n');

const main = async (): Promise<number> => {
  rmSync(REPORTS, { recursive: true, force: true });
  mkdirSync(REPORTS, { recursive: true });
  const results = await runAll(interruptible());
  const total = counts();
  const untested = process.env['CI'] === 'true' && total.passed + total.failed === 0;
  console.log(`\n${summary(results)}\n`);
  if (untested) console.log('No test has run.');
  console.log(closingLine(total));
  return results.every(({ passed }) => passed) && total.failed === 0 && !untested ? 0 : 1;
};

process.exitCode = await main();
