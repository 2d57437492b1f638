/** The whole system on loopback: real control plane, emulators, stand-ins, and the bundles that are deployed. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { makeLog, type Log } from '#shared/app/log.ts';
import type { Kubelet } from '#test/kubelet/kubelet.ts';
import type { ControlPlane } from '#test/services/control-plane.ts';
import { buildAll } from '#test/tools/build.ts';

import type { Cloud } from './cloud.ts';
import type { Deployments } from './deploy-all.ts';
import { applyInstallation } from './identities.ts';
import { startInstallation, type Installation, type InstallationOptions } from './installation.ts';
import { startNode } from './node.ts';
import type { Progress } from './progress.ts';
import { PROJECT, claimRanges, owned, startServices, type Services } from './services.ts';

export const INSTALLATION = 'local';

export interface Stack {
  readonly controlPlane: ControlPlane;
  readonly cloud: Cloud;
  /** Runs Pods. */
  readonly kubelet: Kubelet;
  /** The first one has the stack's own name and looks after all namespaces, unless told otherwise. */
  readonly installations: readonly [Installation, ...Installation[]];
  /** Of the first installation. */
  readonly deployments: Deployments;
  /** What `.local/env` holds. */
  readonly env: Readonly<Record<string, string>>;
  readonly runDir: string;
  stop(): Promise<void>;
}

export interface StackOptions {
  readonly progress: Progress;
  /** Settings of deployables that differ from the defaults, by environment key. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Default true: the minute jobs run. */
  readonly scheduled?: boolean;
  /** Default 1: loopback ranges of about 120 machines each. */
  readonly ranges?: number;
  /** Instead of the one that looks after all namespaces; told what they run on. */
  readonly installations?: (
    services: Services,
    owner: AsyncDisposableStack,
  ) => Promise<readonly InstallationOptions[]>;
}

const environment = (
  services: Services,
  kubelet: Kubelet,
  { id, deployments: { urls } }: Installation,
): Record<string, string> => ({
  KUBECONFIG: services.controlPlane.adminKubeconfig,
  DISCOVERY_URL: urls.discovery,
  PROVISION_URL: urls.provision,
  HEALTH_URL: urls.health,
  GC_URL: urls.gc,
  ECHO_URL: urls.echo,
  ECHO_CA_FILE: services.cloud.caFile,
  COMPUTE_URL: services.cloud.compute.url,
  KUBELET_URL: kubelet.url,
  TARGET_URL: services.cloud.target.url,
  EXTERNAL_PROXY: `${services.cloud.externalProxy.host}:${services.cloud.externalProxy.port}`,
  FIRESTORE_EMULATOR_HOST: services.firestore,
  PUBSUB_EMULATOR_HOST: services.pubsub,
  GOOGLE_CLOUD_PROJECT: PROJECT,
  INSTALLATION_ID: id,
});

const theOne = ({ settings = {}, scheduled = true }: StackOptions): readonly InstallationOptions[] => [
  { id: INSTALLATION, namespaces: '*', settings, scheduled },
];

const startInstallations = async (
  owner: AsyncDisposableStack,
  options: StackOptions,
  services: Services,
  place: { readonly runDir: string; readonly log: Log },
): Promise<readonly [Installation, ...Installation[]]> => {
  const { progress, installations } = options;
  const [first, ...others] = (await installations?.(services, owner)) ?? theOne(options);
  if (!first) throw new RangeError('a stack has at least one installation');
  const start = (one: InstallationOptions, runDir: string): Promise<Installation> =>
    startInstallation(owner, one, { ...place, services, progress, runDir });
  const started: [Installation, ...Installation[]] = [await start(first, place.runDir)];
  for (const other of others) started.push(await start(other, join(place.runDir, other.id)));
  return started;
};

const assemble = async (owner: AsyncDisposableStack, options: StackOptions): Promise<Omit<Stack, 'stop'>> => {
  const { progress } = options;
  const runDir = await mkdtemp(join(tmpdir(), 'egress-proxies-'));
  owner.defer(() => rm(runDir, { recursive: true, force: true }));
  const log = makeLog((line) => {
    if (/"severity":"(WARNING|ERROR)"/u.test(line)) progress.note(`  ! ${line.trimEnd()}`);
  });
  const ranges = await claimRanges(owner, options.ranges ?? 1);
  const [services] = await Promise.all([
    startServices(owner, { runDir, ranges, progress, log }),
    progress.step('functions built', () => buildAll()),
  ]);
  const { server, caFile, tokens } = services.controlPlane;
  await progress.step('CRD and roles applied', () =>
    applyInstallation({ server, caFile, token: tokens['admin'] ?? '' }),
  );
  const kubelet = owned(owner, await startNode(services.controlPlane, log));
  const installations = await progress.step('functions and watcher running', () =>
    startInstallations(owner, options, services, { runDir, log }),
  );
  const [first] = installations;
  return {
    controlPlane: services.controlPlane,
    cloud: services.cloud,
    kubelet,
    installations,
    deployments: first.deployments,
    env: environment(services, kubelet, first),
    runDir,
  };
};

/** Starts everything; when a part fails, nothing is left of the others. */
export const startStack = async (options: StackOptions): Promise<Stack> => {
  await using owner = new AsyncDisposableStack();
  const stack = await assemble(owner, options);
  const kept = owner.move();
  return { ...stack, stop: () => kept.disposeAsync() };
};
