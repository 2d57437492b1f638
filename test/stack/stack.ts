/** The whole system on loopback: real control plane, emulators, stand-ins, and the bundles that are deployed. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { makeLog, type Log } from '#shared/app/log.ts';
import type { Kubelet } from '#test/kubelet/kubelet.ts';
import { startControlPlane, type ControlPlane } from '#test/services/control-plane.ts';
import { startFirestoreEmulator, startPubsubEmulator } from '#test/services/emulators.ts';
import { claimLoopbackRange, type LoopbackRange } from '#test/services/ports.ts';
import { startTogether } from '#test/services/together.ts';
import { buildAll } from '#test/tools/build.ts';

import { startCloud, type Cloud } from './cloud.ts';
import { deployAll, type Deployments } from './deploy-all.ts';
import { startDispatcher } from './dispatcher.ts';
import { CLUSTER_USERS, applyInstallation } from './identities.ts';
import { startNode } from './node.ts';
import type { Progress } from './progress.ts';
import { startScheduler } from './scheduler.ts';
import { SUBSCRIPTIONS } from './subscriptions.ts';

export const PROJECT = 'local-egress';
export const INSTALLATION = 'local';

export interface Stack {
  readonly controlPlane: ControlPlane;
  readonly cloud: Cloud;
  /** Runs Pods. */
  readonly kubelet: Kubelet;
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
}

interface Services {
  readonly controlPlane: ControlPlane;
  readonly firestore: string;
  readonly pubsub: string;
  readonly cloud: Cloud;
}

/** Adopts what has a `stop`, to be stopped last in, first out. */
const owned = <T extends { stop(): Promise<void> }>(owner: AsyncDisposableStack, thing: T): T => {
  owner.defer(() => thing.stop());
  return thing;
};

const startServices = async (
  owner: AsyncDisposableStack,
  runDir: string,
  ranges: readonly LoopbackRange[],
  { progress }: StackOptions,
  log: Log,
): Promise<Services> => {
  const [controlPlane, firestore, pubsub, cloud] = await startTogether([
    progress.step('Kubernetes control plane', () =>
      startControlPlane({
        runDir,
        users: CLUSTER_USERS.map((name) => ({ name })),
        log: (line) => progress.note(line),
      }),
    ),
    progress.step('Firestore emulator', () => startFirestoreEmulator({ runDir })),
    progress.step('Pub/Sub emulator', () => startPubsubEmulator({ runDir })),
    progress.step('Compute Engine stand-in', () => startCloud(PROJECT, runDir, ranges, log)),
  ]);
  for (const service of [cloud, pubsub, firestore, controlPlane]) owned(owner, service);
  // The product's clients, and ours, find the emulators by these.
  process.env['PUBSUB_EMULATOR_HOST'] = pubsub.host;
  process.env['FIRESTORE_EMULATOR_HOST'] = firestore.host;
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  return { controlPlane, cloud, firestore: firestore.host, pubsub: pubsub.host };
};

const commonSettings = (services: Services): Record<string, string> => ({
  GOOGLE_CLOUD_PROJECT: PROJECT,
  INSTALLATION_ID: INSTALLATION,
  PROXY_NAMESPACES: '*',
  PROVIDERS: 'gcp,kubernetes',
  FIRESTORE_EMULATOR_HOST: services.firestore,
  PUBSUB_EMULATOR_HOST: services.pubsub,
  COMPUTE_ENDPOINT: services.cloud.compute.url,
  // Everything here lives on loopback, External proxies included.
  ALLOW_PRIVATE_ENDPOINTS: 'true',
  METADATA_SERVER_DETECTION: 'none',
});

const environment = (
  services: Services,
  kubelet: Kubelet,
  { urls }: Deployments,
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
  INSTALLATION_ID: INSTALLATION,
});

const connect = async (
  owner: AsyncDisposableStack,
  deployments: Deployments,
  options: StackOptions,
  log: Log,
): Promise<void> => {
  owned(
    owner,
    await startDispatcher({
      projectId: PROJECT,
      subscriptions: SUBSCRIPTIONS,
      urlOf: (target) => deployments.urls[target],
      log,
    }),
  );
  if (options.scheduled === false) return;
  const jobs = (['health', 'gc'] as const).map((name) => ({
    name,
    url: `${deployments.urls[name]}/`,
    attemptDeadlineSeconds: 180,
  }));
  owned(owner, startScheduler(jobs, log));
};

const claimRanges = async (owner: AsyncDisposableStack, count: number): Promise<readonly LoopbackRange[]> => {
  const ranges: LoopbackRange[] = [];
  while (ranges.length < count) {
    const range = await claimLoopbackRange();
    owner.defer(() => range.release());
    ranges.push(range);
  }
  return ranges;
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
    startServices(owner, runDir, ranges, options, log),
    progress.step('functions built', () => buildAll()),
  ]);
  const { server, caFile, tokens } = services.controlPlane;
  await progress.step('CRD and roles applied', () =>
    applyInstallation({ server, caFile, token: tokens['admin'] ?? '' }),
  );
  const kubelet = owned(owner, await startNode(services.controlPlane, log));
  const deployments = await progress.step('functions and watcher running', async () => {
    const deployed = await deployAll({
      owner,
      runDir,
      services,
      settings: { ...commonSettings(services), ...options.settings },
      // Topics have to exist before anybody publishes, and functions before anybody pushes.
      beforeWatcher: (functions) => connect(owner, functions, options, log),
      note: (line) => progress.note(`  ! ${line}`),
    });
    return deployed;
  });
  return {
    controlPlane: services.controlPlane,
    cloud: services.cloud,
    kubelet,
    deployments,
    env: environment(services, kubelet, deployments),
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
