/** A project on this machine: a copy of the repository, the services that stand in for Google, and a shell for the README. */

import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';

import { gcloud } from '#test/google-apis/gcloud.ts';
import { startGoogleApis, type GoogleApis } from '#test/google-apis/stand-in.ts';
import type { ApiAddress } from '#test/services/api.ts';
import { startControlPlane } from '#test/services/control-plane.ts';
import { startPubsubEmulator } from '#test/services/emulators.ts';
import { startTogether, stopTogether } from '#test/services/together.ts';
import { findOnPath } from '#test/setup/locate.mjs';
import { DIST } from '#test/tools/build.ts';

import { kubectl } from './kubectl.ts';
import { openShell, type BlockRun, type Shell, type Stub } from './readme.ts';
import { copySources, copyZips, ENVIRONMENT, MODULE } from './terraform.ts';

export const ROOT = join(MODULE, '..');
export const PROJECT = 'my-project';
export const PREFIX = 'prod-';

/** What docker says that it has pushed. */
export const IMAGE = `europe-west1-docker.pkg.dev/${PROJECT}/prod-functions/watcher@sha256:${'0'.repeat(64)}`;

/** What the README calls that cannot run here. */
const STUBS: Readonly<Record<string, Stub>> = {
  gcloud: {
    why: 'it calls Google: what it makes is made in the stand-in',
    prints: { 'config get': 'me@example.com', 'auth print-identity-token': 'a-token' },
  },
  kubectl: { why: 'there is no cluster of its own: it is done to an API server after each block' },
  docker: {
    why: 'there is no registry to push to',
    prints: { inspect: IMAGE },
  },
  npm: { why: 'the functions have been built before, with the very packages that this runs on' },
  git: { why: 'there is nothing to pull' },
  curl: { why: 'nobody answers under the URLs of functions and of the metadata server' },
};

/** The program of the same name, for machines that have none. */
const JQ: Readonly<Record<string, Stub>> = {
  jq: { why: 'it is not on the PATH', runs: `'${process.execPath}' '${join(import.meta.dirname, 'jq.ts')}'` },
};

/** Without it the provider gathers changes of policies for three seconds. */
const BATCHING = `provider "google" {
  batching {
    enable_batching = true
    send_after      = "300ms"
  }
}
`;

export type Report = (what: string, outcome: { readonly ok: boolean; readonly text: string }) => boolean;

/** The repository as far as the README needs it. */
const copyRepository = async (dir: string): Promise<void> => {
  for (const folder of ['terraform', 'crds']) await copySources(join(ROOT, folder), join(dir, folder));
  for (const dist of ['dist', 'dist-of-another']) await copyZips(join(dir, dist));
  for (const name of ['public-ip', 'private-ip'])
    await writeFile(join(dir, 'terraform/examples', name, 'batching_override.tf'), BATCHING);
};

export interface Place {
  readonly dir: string;
  readonly apis: GoogleApis;
  readonly pubsubHost: string;
  readonly api: ApiAddress;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly report: Report;
  /** Fulfilled when the project has what the README makes by hand. */
  readonly project: PromiseWithResolvers<void>;
}

/** What an image is built of must be where the README says, built or not; `from` is the folder within the repository. */
const requireSources = (from: string, args: readonly string[]): void => {
  const [file = '', folder = ''] = [args[args.indexOf('-f') + 1], args.at(-1)];
  if (!existsSync(join(ROOT, from, file))) throw new Error(`docker: there is no ${file}`);
  if (join(ROOT, from, folder) !== join(DIST, 'watcher')) throw new Error(`docker: ${folder} is not built`);
};

/** Runs a block, and does what its stubs were called for. */
export const runBlock = async (place: Place, shell: Shell, script: string): Promise<BlockRun> => {
  const ran = await shell.run(script);
  try {
    for (const { program, args, cwd } of ran.calls) {
      if (program === 'gcloud') gcloud(place.apis.world, args);
      if (program === 'kubectl') await kubectl(place.api, args, cwd);
      if (program === 'docker' && args[0] === 'build') requireSources(relative(place.dir, cwd), args);
    }
    return ran;
  } catch (error) {
    return { ...ran, ok: false, text: `${ran.text}\n${String(error)}` };
  }
};

export const shellFor = async (place: Place): Promise<Shell> => {
  const dir = join(place.dir, '.shell');
  await mkdir(dir);
  const jq = findOnPath('jq', process.env) === undefined ? JQ : {};
  const programs = ['terraform', 'mkdir', 'cat', ...(jq === JQ ? [] : ['jq'])];
  return openShell({ dir, root: place.dir, env: place.env, programs, stubs: { ...STUBS, ...jq } });
};

/** Whose project and rights a person works with is nothing to do with these checks. */
const PERSONAL = /^(?:GOOGLE|GCLOUD|CLOUDSDK|TF_VAR|TF_CLI_ARGS)_?/;

/** What Terraform is given beside the README's words: where the APIs are, and that nobody is there to say yes. */
const environmentFor = (apis: GoogleApis): Place['env'] => ({
  ...Object.fromEntries(Object.entries(process.env).filter(([key]) => !PERSONAL.test(key))),
  ...apis.environment,
  ...ENVIRONMENT,
  TF_CLI_ARGS_init: '-no-color',
  TF_CLI_ARGS_plan: '-no-color -parallelism=30',
  TF_CLI_ARGS_apply: '-no-color -auto-approve -parallelism=30',
  TF_CLI_ARGS_destroy: '-no-color -auto-approve -parallelism=30',
});

/** A place without an installation; `dispose` takes everything away. */
export const openPlace = async (report: Report): Promise<Place & AsyncDisposable> => {
  await using owner = new AsyncDisposableStack();
  const dir = await mkdtemp(join(tmpdir(), 'egress-deploy-'));
  owner.defer(() => rm(dir, { recursive: true, force: true }));
  const runDir = join(dir, '.services');
  await mkdir(runDir);
  await copyRepository(dir);
  const services = await startTogether([
    startPubsubEmulator({ runDir }),
    startControlPlane({ runDir, users: [], log: () => undefined }),
  ]);
  owner.defer(() => stopTogether(services));
  const [{ host: pubsubHost }, plane] = services;
  const apis = await startGoogleApis({ projectId: PROJECT, pubsubHost });
  owner.defer(() => apis.stop());
  const api = { server: plane.server, caFile: plane.caFile, token: plane.tokens['admin'] ?? '' };
  const project = Promise.withResolvers<void>();
  const kept = owner.move();
  return {
    dir,
    apis,
    pubsubHost,
    api,
    env: environmentFor(apis),
    report,
    project,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
};
