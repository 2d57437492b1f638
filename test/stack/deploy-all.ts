/** Every deployable with its own settings and, where it has rights in the cluster, its own identity. */

import { join } from 'node:path';

import type { ControlPlane } from '#test/services/control-plane.ts';
import { kubeconfigOver, type Link } from '#test/services/link.ts';
import { startTogether, stopTogether, type Stoppable } from '#test/services/together.ts';
import type { Deployable } from '#test/tools/build.ts';

import type { Cloud } from './cloud.ts';
import { deploy, type Deployment } from './deployments.ts';
import { CLUSTER_USERS } from './identities.ts';
import { startTlsFront } from './tls-front.ts';

export interface Deployments {
  readonly instances: Readonly<Record<Exclude<Deployable, 'watcher'>, Deployment>>;
  readonly urls: Readonly<Record<Exclude<Deployable, 'watcher'>, string>>;
}

export interface DeployAllOptions {
  readonly owner: AsyncDisposableStack;
  readonly runDir: string;
  readonly services: { readonly controlPlane: ControlPlane; readonly cloud: Cloud };
  readonly settings: Readonly<Record<string, string>>;
  /** Beside them, of one deployable alone. */
  readonly settingsOf?: (name: Deployable) => Readonly<Record<string, string>>;
  /** The way to the cluster; straight to it when there is none. */
  readonly link?: Link;
  readonly beforeWatcher: (functions: Deployments) => Promise<void>;
  readonly note: (line: string) => void;
}

const makeDeployer = (options: DeployAllOptions) => {
  const { runDir, services, settings, settingsOf, link, note } = options;
  const identity = async (name: Deployable): Promise<Record<string, string>> => {
    if (!CLUSTER_USERS.some((user) => user === name)) return {};
    const { controlPlane } = services;
    const kubeconfig = await controlPlane.kubeconfigFor(name);
    const file = join(runDir, `kubeconfig-${name}-over-link.yaml`);
    return {
      KUBECONFIG: link ? kubeconfigOver(link, { kubeconfig, server: controlPlane.server, file }) : kubeconfig,
    };
  };
  return async (name: Deployable, own: Readonly<Record<string, string>> = {}): Promise<Deployment> => {
    const env = { ...settings, ...(await identity(name)), ...own, ...settingsOf?.(name) };
    return deploy({ name, env, runDir, log: note });
  };
};

/** Starts the functions, then what `beforeWatcher` connects to them, then the watcher. */
export const deployAll = async (
  options: DeployAllOptions,
): Promise<Deployments & { watcher: Deployment }> => {
  const { owner, services } = options;
  const start = makeDeployer(options);
  // All at the same time: what one of them has under way, nobody waits for any more.
  const running: Stoppable[] = [];
  owner.defer(() => stopTogether(running));
  const echo = await start('echo');
  running.push(echo);
  const front = await startTlsFront({ ...services.cloud.echoFront, upstream: echo.url });
  owner.defer(() => front.stop());
  const [provision, health, discovery, gc] = await startTogether([
    start('provision'),
    start('health', { PROBE_TARGET_URL: front.url, PROBE_CA_FILE: services.cloud.caFile }),
    start('discovery'),
    start('gc'),
  ]);
  running.push(provision, health, discovery, gc);
  const functions: Deployments = {
    instances: { provision, health, discovery, gc, echo },
    urls: {
      provision: provision.url,
      health: health.url,
      discovery: discovery.url,
      gc: gc.url,
      echo: front.url,
    },
  };
  await options.beforeWatcher(functions);
  const watcher = await start('watcher');
  running.push(watcher);
  return { ...functions, watcher };
};
