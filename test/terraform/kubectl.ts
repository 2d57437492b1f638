/** The kubectl commands of the README, on a real API server, by means of the tests' own. */

import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';

import { callApi, objectPath, parseManifests, type ApiAddress, type Manifest } from '#test/services/api.ts';
import { applyManifest, ensureNamespace } from '#test/services/apply.ts';
import { buildKustomization } from '#test/services/kustomize.ts';

/** What needs more than an API server: functions, nodes, or Proxies that somebody makes. */
const NOT_HERE: ReadonlyMap<string, string> = new Map([
  ['rollout status', 'no Pod runs without a node'],
  ['wait --for=condition=Ready', 'no Proxy gets Ready without functions'],
  ['describe proxy', 'it only looks'],
  ['delete proxies', 'the end-to-end tests delete them, with functions that let them go'],
]);

/** As kubectl orders them: what others live in or are of comes first. */
const FIRST = ['Namespace', 'CustomResourceDefinition', 'ServiceAccount'];
const rank = ({ kind }: Manifest): number => (FIRST.indexOf(kind) + FIRST.length + 1) % (FIRST.length + 1);

const built = (folder: string): readonly Manifest[] =>
  buildKustomization(folder).toSorted((a, b) => rank(a) - rank(b));

const apply = async (api: ApiAddress, manifests: readonly Manifest[]): Promise<void> => {
  for (const manifest of manifests) await applyManifest(api, manifest);
};

const remove = async (api: ApiAddress, manifests: readonly Manifest[]): Promise<void> => {
  for (const manifest of manifests) {
    const { status } = await callApi(api, await objectPath(api, manifest), { method: 'DELETE' });
    if (status >= 300)
      throw new Error(`${manifest.kind} ${manifest.metadata.name} is not deleted: ${status}`);
  }
};

type Command = (api: ApiAddress, what: string, cwd: string) => Promise<void>;

const namespace = (name: string): Manifest => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });

const COMMANDS: Readonly<Record<string, Command>> = {
  'create namespace': (api, name) => ensureNamespace(api, name),
  'delete namespace': (api, name) => remove(api, [namespace(name)]),
  'apply -k': (api, folder, cwd) => apply(api, built(resolve(cwd, folder))),
  'apply -f': async (api, file, cwd) =>
    apply(api, parseManifests(await readFile(resolve(cwd, file), 'utf8'))),
  'delete -k': (api, folder, cwd) => remove(api, built(resolve(cwd, folder)).toReversed()),
};

/** Runs one command, in the folder in which it was called. Throws for what it does not know and what the server refuses. */
export const kubectl = async (api: ApiAddress, args: readonly string[], cwd: string): Promise<void> => {
  const words = args.filter((word, at) => word !== '--server-side' && word !== '-n' && args[at - 1] !== '-n');
  const line = words.join(' ');
  if (NOT_HERE.keys().some((start) => line.startsWith(start))) return;
  const command = COMMANDS[words.slice(0, 2).join(' ')];
  if (!command) throw new Error(`kubectl ${args.join(' ')}: neither run nor listed`);
  await command(api, words[2] ?? '', cwd);
};
