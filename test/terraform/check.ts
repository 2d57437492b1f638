/** Checks the Terraform module with the real provider, without a cloud: format, validity, its own tests, and its plan. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { z } from 'zod';

import { SUBSCRIPTIONS } from '#test/stack/subscriptions.ts';
import { FUNCTIONS } from '#test/tools/build.ts';

import { environmentFindings, publicFindings, subscriptionFindings } from './findings.ts';
import { planOf, resultsOf } from './plan.ts';
import { copyModule, lacksProvider, terraform, type Ran } from './terraform.ts';

/** The run of `terraform/tests` whose plan is judged, and its installation's prefix. */
const RUN = 'plan';
const PREFIX = 'prod-';

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
    const file = join(import.meta.dirname, '../../functions', name, 'config.ts');
    const loaded: unknown = existsSync(file) ? await import(file) : undefined;
    keys[name] = loaded === undefined ? [] : Object.keys(configModule.parse(loaded).configSchema.shape);
  }
  return keys;
};

const judgePlan = async (output: string): Promise<readonly string[]> => {
  const plan = planOf(output, RUN);
  return [
    ...environmentFindings(plan, await schemaKeys()),
    ...publicFindings(plan),
    ...subscriptionFindings(plan, SUBSCRIPTIONS, PREFIX),
  ];
};

const report = (what: string, { ok, text }: Ran): boolean => {
  say(`${ok ? 'ok' : 'FAILED'}  ${what}`);
  if (!ok) say(text);
  return ok;
};

const testModule = async (run: (...args: readonly string[]) => Promise<Ran>): Promise<boolean> => {
  const tested = await run('test', '-json', '-verbose');
  say(resultsOf(tested.stdout).join('\n'));
  if (!report('terraform test', { ...tested, text: '' })) return false;
  const findings = await judgePlan(tested.stdout);
  return report('the plan agrees with the code and the local stack', {
    ok: findings.length === 0,
    text: findings.join('\n'),
    stdout: '',
  });
};

const check = async (dir: string): Promise<number> => {
  const run = async (...args: readonly string[]): Promise<Ran> => {
    const ran = await terraform(dir, [...args, '-no-color']);
    return ran ?? { ok: false, text: 'terraform vanished', stdout: '' };
  };
  if (!(await terraform(dir, ['version']))) return leaveOut('There is no terraform on the PATH.');
  // First what needs no provider, so that a broken file is not taken for a missing one.
  const formatted = report('terraform fmt', await run('fmt', '-check', '-diff', '-recursive'));
  const initialised = await run('init', '-backend=false');
  if (formatted && lacksProvider(initialised))
    return leaveOut(`The provider hashicorp/google cannot be had:\n${initialised.text}`);
  const ready = report('terraform init', initialised);
  const valid = ready && report('terraform validate', await run('validate'));
  return formatted && valid && (await testModule(run)) ? 0 : 1;
};

const copy = await copyModule();
try {
  process.exitCode = await check(copy.dir);
} finally {
  await copy.remove();
}
