/** Where a function's cluster is, by its environment; the client library is not needed for that. */

import { accessSync, constants } from 'node:fs';

import { SystemError } from '#shared/app/errors.ts';

import type { ClusterOptions } from './configuration.ts';

export type { ClusterOptions } from './configuration.ts';

export interface ClusterEnvironment {
  readonly KUBECONFIG?: string | undefined;
  readonly CLUSTER_ENDPOINT?: string | undefined;
}

const unusable = (problem: string, cause?: unknown): SystemError =>
  new SystemError('NotConfigured', `Configuration is not usable:\n  ${problem}`, { cause });

/** The options that a function's environment asks for. Throws `NotConfigured` when it names no cluster. */
export const clusterOptions = (env: ClusterEnvironment): ClusterOptions => {
  if (env.KUBECONFIG) return { kubeconfig: env.KUBECONFIG };
  if (env.CLUSTER_ENDPOINT) return { endpoint: env.CLUSTER_ENDPOINT };
  throw unusable('KUBECONFIG or CLUSTER_ENDPOINT: is required');
};

const requireReadable = (path: string): void => {
  try {
    accessSync(path, constants.R_OK);
  } catch (cause) {
    throw unusable(`KUBECONFIG: ${path} is not readable`, cause);
  }
};

/** The same, for a start: throws `NotConfigured` too for what can be seen to be wrong without the client library. */
export const checkedClusterOptions = (env: ClusterEnvironment): ClusterOptions => {
  const options = clusterOptions(env);
  if ('kubeconfig' in options) requireReadable(options.kubeconfig);
  if ('endpoint' in options && URL.parse(options.endpoint)?.protocol !== 'https:') {
    throw unusable('CLUSTER_ENDPOINT: must be https');
  }
  return options;
};
