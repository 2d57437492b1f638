/** Checks the Terraform module with the real provider, without a cloud: format, validity, its own tests, and its plan. */

import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';

import { z } from 'zod';

import { SUBSCRIPTIONS } from '#test/stack/subscriptions.ts';
import { DEPLOYABLES, FUNCTIONS } from '#test/tools/build.ts';

import { checkDeployments } from './deploy.ts';
import { environmentFindings, publicFindings, subscriptionFindings } from './findings.ts';
import { counterFindings, countersOf, readRunbooks, runbookFindings } from './observability.ts';
import { planOf, resultsOf } from './plan.ts';
import {
  audienceFindings,
  codeFindings,
  databaseFindings,
  indexFindings,
  ingressFindings,
  invokerFindings,
  repeatFindings,
} from './policies.ts';
import { queryShapes } from './queries.ts';
import { RIGHTS, rightsFindings } from './rights.ts';
import { MODULE, copyModule, lacksProvider, terraform, type Ran } from './terraform.ts';

/** The run of `terraform/tests` whose plan is judged, the one right after an apply, and their installation's prefix. */
const RUN = 'plan';
const AGAIN = 'again';
const PREFIX = 'prod-';
const FUNCTION_FOLDERS = join(import.meta.dirname, '../../functions');

const say = (text: string): void => {
  process.stdout.write(`${text}\n`);
};

/** Without terraform or its provider there is nothing to check with: a failure only where everything must be there. */
const leaveOut = (why: string): number => {
  const must = process.env['CI'] === 'true';
  say(`${why}\nThe Terraform checks are left out${must ? ', which is a failure under CI=true' : ''}.`);
  return must ? 1 : 0;
};

const configModule = z.object({ configSchema: z.instanceof(z.ZodObject) });

/** Environment keys by function; a function without configuration reads none. */
const schemaKeys = async (): Promise<Readonly<Record<string, readonly string[]>>> => {
  const keys: Record<string, readonly string[]> = {};
  for (const name of FUNCTIONS) {
    const file = join(FUNCTION_FOLDERS, name, 'config.ts');
    const loaded: unknown = existsSync(file) ? await import(file) : undefined;
    keys[name] = loaded === undefined ? [] : Object.keys(configModule.parse(loaded).configSchema.shape);
  }
  return keys;
};

/** Whom the internet may reach, with a token; and who has one, by the keys of the module's bindings. */
const OPEN = ['discovery', 'gc', 'echo'];
const CALLERS = {
  provision: ['push'],
  health: ['push', 'scheduler'],
  discovery: ['serviceAccount:crawler@my-project.iam.gserviceaccount.com'],
  gc: ['group:operators@example.com', 'scheduler'],
  echo: ['health'],
};

const judgePlan = async (output: string): Promise<readonly string[]> => {
  const plan = planOf(output, RUN);
  const again = planOf(output, AGAIN);
  return [
    ...environmentFindings(plan, await schemaKeys()),
    ...publicFindings(plan),
    ...subscriptionFindings(plan, SUBSCRIPTIONS, PREFIX),
    ...indexFindings(plan, await queryShapes()),
    ...codeFindings(plan),
    ...databaseFindings(plan),
    ...ingressFindings(plan, OPEN),
    ...invokerFindings(plan, CALLERS),
    ...rightsFindings(plan, RIGHTS),
    ...counterFindings(plan, await countersOf(FUNCTION_FOLDERS, DEPLOYABLES), PREFIX),
    ...runbookFindings(plan, await readRunbooks(join(MODULE, 'runbooks'))),
    ...audienceFindings(again),
    ...repeatFindings(again),
  ];
};

const report = (what: string, { ok, text }: Pick<Ran, 'ok' | 'text'>): boolean => {
  say(`${ok ? 'ok' : 'FAILED'}  ${what}`);
  if (!ok) say(text);
  return ok;
};

type Run = (...args: readonly string[]) => Promise<Ran>;

const TESTS = 'tests';
const JUDGED = `${TESTS}/installation.tftest.hcl`;

/** Plans are printed with the provider's whole schema, and so only where one is judged. */
const testModule = async (run: Run): Promise<boolean> => {
  const files = (await readdir(join(MODULE, TESTS))).map((file) => `${TESTS}/${file}`);
  const others = files.filter((file) => file !== JUDGED).map((file) => `-filter=${file}`);
  let passed = true;
  let plans = '';
  for (const options of [['-verbose', `-filter=${JUDGED}`], others]) {
    const tested = await run('test', '-json', ...options);
    say(resultsOf(tested.stdout).join('\n'));
    passed = report('terraform test', { ...tested, text: tested.stderr }) && passed;
    plans += tested.stdout;
  }
  if (!passed) return false;
  const findings = await judgePlan(plans);
  return report('the plan agrees with the code and the local stack', {
    ok: findings.length === 0,
    text: findings.join('\n'),
  });
};

const check = async (dir: string): Promise<number> => {
  const run: Run = async (...args) => {
    const ran = await terraform(dir, [...args, '-no-color']);
    return ran ?? { ok: false, text: 'terraform vanished', stdout: '', stderr: '' };
  };
  if (!(await terraform(dir, ['version']))) return leaveOut('There is no terraform on the PATH.');
  // First what needs no provider, so that a broken file is not taken for a missing one.
  const formatted = report('terraform fmt', await run('fmt', '-check', '-diff', '-recursive'));
  const initialised = await run('init', '-backend=false');
  if (formatted && lacksProvider(initialised))
    return leaveOut(`The provider hashicorp/google cannot be had:\n${initialised.text}`);
  const ready = report('terraform init', initialised);
  const valid = ready && report('terraform validate', await run('validate'));
  if (!formatted || !valid) return 1;
  // Mostly sleeps of the provider, so that the others cost no time beside it.
  const results = await Promise.all([checkDeployments(report), testModule(run)]);
  return results.every(Boolean) ? 0 : 1;
};

const copy = await copyModule();
try {
  process.exitCode = await check(copy.dir);
} finally {
  await copy.remove();
}
