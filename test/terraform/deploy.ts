/**
 * The README of the module, command by command, against a stand-in for Google's APIs: an installation from nothing to its end.
 * Beside it a second installation in the same project, which is taken away and made anew.
 */

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { callApi } from '#test/services/api.ts';
import { SUBSCRIPTIONS } from '#test/stack/subscriptions.ts';

import { deliveryFindings, deployedFunctions, startFindings, watcherFindings } from './deployed.ts';
import {
  IMAGE,
  openPlace,
  PREFIX,
  PROJECT,
  ROOT,
  runBlock,
  shellFor,
  type Place,
  type Report,
} from './place.ts';
import { shellBlocks, type Shell } from './readme.ts';
import { MODULE, terraform } from './terraform.ts';

const PRIVATE = `project_id     = "${PROJECT}"
cluster_name   = "crawling"
crawler_ranges = ["10.64.0.0/14"]
crawlers       = ["serviceAccount:crawler@${PROJECT}.iam.gserviceaccount.com"]
deletion_protection = false
dist_dir = "../../../dist-of-another"
`;

const found = (findings: readonly string[]): { ok: boolean; text: string } => ({
  ok: findings.length === 0,
  text: findings.join('\n'),
});

/** Changes of the first installation that were asked for since `from`, as `METHOD name`. */
const changesSince = ({ apis }: Place, from: number): readonly string[] =>
  apis
    .calls()
    .slice(from)
    .filter(({ method, url }) => method !== 'GET' && url.includes(PREFIX))
    .map(({ method, url }) => `${method} ${new URL(url, 'http://stand-in').pathname.split('/').at(-1)}`)
    .toSorted();

const installed = async (place: Place): Promise<readonly string[]> => {
  const { apis, pubsubHost } = place;
  const answer = await fetch(`http://${pubsubHost}/v1/projects/${PROJECT}/subscriptions`);
  const manifest = join(example(place, 'public-ip'), 'cluster/environment.yaml');
  const functions = deployedFunctions(apis.world.resources, PREFIX);
  return [
    ...(await startFindings(functions, join(ROOT, 'functions'))),
    ...(await watcherFindings(await readFile(manifest, 'utf8'), join(ROOT, 'functions'))),
    ...deliveryFindings(
      await answer.json(),
      { projectId: PROJECT, prefix: PREFIX },
      SUBSCRIPTIONS,
      functions,
    ),
  ];
};

const example = (place: Place, name: string): string => join(place.dir, 'terraform/examples', name);

/** A plan that has nothing to do ends with 0, one that has with 2. */
const emptyPlan = async (place: Place, name: string): Promise<{ ok: boolean; text: string }> => {
  const args = ['plan', '-detailed-exitcode', '-no-color'];
  const ran = await terraform(example(place, name), args, place.env);
  return ran ?? { ok: false, text: 'terraform vanished' };
};

const imageFindings = async ({ api }: Place): Promise<readonly string[]> => {
  const path = '/apis/apps/v1/namespaces/egress-proxies/deployments/watcher';
  const { body } = await callApi(api, path);
  return JSON.stringify(body).includes(`"image":"${IMAGE}"`) ? [] : [JSON.stringify(body)];
};

/** A script's last command, in short. */
const lastCommand = (script: string): string =>
  script
    .trim()
    .replaceAll(/ *\\\n +/g, ' ')
    .split('\n')
    .at(-1)
    ?.slice(0, 80) ?? '';

const firstPart = async (place: Place, shell: Shell, scripts: readonly string[]): Promise<boolean> => {
  const { report, apis } = place;
  for (const script of scripts) {
    const from = apis.calls().length;
    if (!report(`README: ${lastCommand(script)}`, await runBlock(place, shell, script))) return false;
    if (script.includes('service-accounts create')) place.project.resolve();
    if (script.includes('watcher_image')) {
      const changes = changesSince(place, from);
      if (!report('another image changes nothing but outputs', found(changes))) return false;
    }
  }
  if (!report('the watcher in the cluster has the image by its digest', found(await imageFindings(place))))
    return false;
  return report(
    'the installation would start, and is delivered to as the local stack is',
    found(await installed(place)),
  );
};

/** Other code of one function. */
const upgrade = async (place: Place, shell: Shell, scripts: readonly string[]): Promise<boolean> => {
  const { report, apis, dir } = place;
  await writeFile(join(dir, 'dist/gc.zip'), 'other code');
  const from = apis.calls().length;
  for (const script of scripts)
    if (!report('README: upgrade', await runBlock(place, shell, script))) return false;
  const changes = changesSince(place, from).map((one) => one.replace(/gc-[0-9a-f]{64}/, 'gc-HASH'));
  const wanted = ['DELETE gc-HASH.zip', 'PATCH prod-gc', 'POST o'];
  const good = JSON.stringify(changes) === JSON.stringify(wanted);
  return (
    report('row 83: other code of gc deploys gc, and nothing else', { ok: good, text: changes.join('\n') }) &&
    report('the plan after that is empty', await emptyPlan(place, 'public-ip'))
  );
};

const uninstall = async (place: Place, shell: Shell, scripts: readonly string[]): Promise<boolean> => {
  for (const script of scripts)
    if (!place.report('README: uninstall', await runBlock(place, shell, script))) return false;
  const { apis } = place;
  const bound = [...apis.world.policies].filter(([, policy]) =>
    JSON.stringify(policy).includes(`:${PREFIX}`),
  );
  const left = [
    ...(await apis.names()).filter((name) => /prod\b/.test(name)),
    ...bound.map(([key]) => `somebody in the policy of ${key}`),
  ];
  return place.report('nothing is left of it', found(left));
};

const PARTS: Readonly<
  Record<string, (place: Place, shell: Shell, scripts: readonly string[]) => Promise<boolean>>
> = {
  'From an empty project to the first lease': firstPart,
  Upgrade: upgrade,
  Uninstall: uninstall,
};

const followReadme = async (place: Place, shell: Shell): Promise<boolean> => {
  const blocks = shellBlocks(await readFile(join(MODULE, 'README.md'), 'utf8'));
  const sections = new Set(blocks.map(({ section }) => section));
  const missing = Object.keys(PARTS).filter((section) => !sections.has(section));
  if (!place.report('README: its sections', found(missing))) return false;
  for (const section of sections) {
    await shell.restart();
    const scripts = blocks.filter((block) => block.section === section).map(({ script }) => script);
    const part = PARTS[section];
    if (part) {
      if (!(await part(place, shell, scripts))) return false;
      continue;
    }
    for (const script of scripts)
      if (!place.report(`README: ${section}`, await runBlock(place, shell, script))) return false;
  }
  return true;
};

const inner = async ({ apis }: Place): Promise<string> => {
  const names = await apis.names();
  const own = names.filter((name) => !/prod\b|default/.test(name));
  return own
    .map((name) => name.replace(/(?:\d{4,}|[0-9a-f]{64})/, 'N'))
    .toSorted()
    .join('\n');
};

/** The example with private addresses in the same project: made, taken away, and made again. */
const repeat = async (place: Place): Promise<boolean> => {
  const { report, env } = place;
  const dir = example(place, 'private-ip');
  const step = async (what: string, ...args: readonly string[]): Promise<boolean> => {
    const ran = await terraform(dir, [...args, '-no-color'], env);
    return report(`examples/private-ip beside it: ${what}`, ran ?? { ok: false, text: 'terraform vanished' });
  };
  await writeFile(join(dir, 'terraform.tfvars'), PRIVATE);
  const ready = await step('init', 'init');
  await place.project.promise;
  if (!ready || !(await step('apply', 'apply'))) return false;
  const before = await inner(place);
  if (!(await step('destroy', 'destroy')) || !(await step('apply again', 'apply'))) return false;
  const after = await inner(place);
  return report('the second time it is what it was', { ok: before === after, text: `${before}\n\n${after}` });
};

const both = async (place: Place): Promise<boolean> => {
  const shell = await shellFor(place);
  const following = followReadme(place, shell).finally(() => place.project.resolve());
  const results = await Promise.all([following, repeat(place)]);
  return results.every(Boolean);
};

/** Of a command that failed: its errors, without the plan before them. */
const complaint = (text: string): string => text.slice(Math.max(0, text.search(/^Error:/m))).slice(-8000);

/** Deploys, upgrades and takes away as the README says; `report` is told every step. */
export const checkDeployments = async (report: Report): Promise<boolean> => {
  const brief: Report = (what, { ok, text }) => report(what, { ok, text: complaint(text) });
  await using place = await openPlace(brief);
  const passed = await both(place);
  return passed;
};
