/** What a person does with `gcloud` before and beside Terraform, done to the stand-in. */

import { clusterResource } from './container.ts';
import { createAccount } from './iam.ts';
import type { World } from './world.ts';

/** The network of a project in which Compute Engine has been enabled. */
const addNetwork = ({ projectId, resources }: World, region: string): void => {
  resources.set(`compute/projects/${projectId}/global/networks/default`, { name: 'default' });
  resources.set(`compute/projects/${projectId}/regions/${region}/subnetworks/default`, { name: 'default' });
};

const requireApi = (world: World, service: string): void => {
  if (!world.enabled.has(service)) throw new Error(`${service} is not enabled`);
};

const createCluster = (world: World, name: string, region: string): void => {
  requireApi(world, 'container.googleapis.com');
  const key = `container/projects/${world.projectId}/locations/${region}/clusters/${name}`;
  world.resources.set(key, clusterResource(name, region));
  addNetwork(world, region);
};

/** The words that are no options, and the options by their name. */
const split = (words: readonly string[]): readonly [readonly string[], ReadonlyMap<string, string>] => [
  words.filter((word) => !word.startsWith('--')),
  new Map(
    words
      .filter((word) => word.startsWith('--'))
      .map((word) => {
        const [name = '', value = ''] = word.slice(2).split('=');
        return [name, value];
      }),
  ),
];

/** Runs a command, given without the word `gcloud`, if it changes something that the stand-in has. */
export const gcloud = (world: World, words: readonly string[]): void => {
  const [names, options] = split(words);
  const [group, kind, verb, name = ''] = names;
  const command = `${group} ${kind} ${verb}`;
  if (group === 'services' && kind === 'enable') for (const one of names.slice(2)) world.enabled.add(one);
  else if (command === 'container clusters create-auto')
    createCluster(world, name, options.get('region') ?? '');
  else if (command === 'iam service-accounts create') {
    requireApi(world, 'iam.googleapis.com');
    createAccount(world, name, {});
  }
};
