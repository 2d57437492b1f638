/** One installation on the services of a stack: its functions and watcher, its topics and its minute jobs. */

import { mkdir } from 'node:fs/promises';

import type { Log } from '#shared/app/log.ts';
import type { Link } from '#test/services/link.ts';
import type { Deployable } from '#test/tools/build.ts';

import { deployAll, type Deployments } from './deploy-all.ts';
import { startDispatcher } from './dispatcher.ts';
import type { Progress } from './progress.ts';
import { startScheduler } from './scheduler.ts';
import { PROJECT, type Services } from './services.ts';
import { subscriptionsOf } from './subscriptions.ts';

export interface InstallationOptions {
  /** Its INSTALLATION_ID. */
  readonly id: string;
  /** Its PROXY_NAMESPACES. */
  readonly namespaces: string;
  /** Before the names of its topics, subscriptions and databases; empty for one that has the project to itself. */
  readonly prefix?: string;
  /** Settings that differ from the defaults, by environment key. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Settings of one deployable alone. */
  readonly settingsOf?: (name: Deployable) => Readonly<Record<string, string>>;
  /** Default true: the minute jobs run. */
  readonly scheduled?: boolean;
  /** The way to the cluster; straight to it when there is none. */
  readonly link?: Link;
}

export interface Installation {
  readonly id: string;
  readonly deployments: Deployments;
  readonly databaseId: string;
  readonly credentialsDatabaseId: string;
  /** Its way to the cluster, where it has one of its own. */
  readonly link?: Link;
}

interface Place {
  readonly services: Services;
  /** Logs of its deployables go here; made when it is missing. */
  readonly runDir: string;
  readonly progress: Progress;
  readonly log: Log;
}

interface Databases {
  readonly FIRESTORE_DATABASE: string;
  readonly CREDENTIALS_DATABASE: string;
}

const databasesOf = (prefix: string): Databases => ({
  FIRESTORE_DATABASE: prefix === '' ? '(default)' : `${prefix}proxies`,
  CREDENTIALS_DATABASE: `${prefix}credentials`,
});

const topicsOf = (prefix: string) => ({
  PROXY_CHANGES_TOPIC: `${prefix}proxy-changes`,
  PROXY_PROBES_TOPIC: `${prefix}proxy-probes`,
});

const settingsFor = (
  { id, namespaces, prefix = '', settings }: InstallationOptions,
  services: Services,
): Record<string, string> => ({
  GOOGLE_CLOUD_PROJECT: PROJECT,
  INSTALLATION_ID: id,
  PROXY_NAMESPACES: namespaces,
  PROVIDERS: 'gcp,kubernetes',
  FIRESTORE_EMULATOR_HOST: services.firestore,
  PUBSUB_EMULATOR_HOST: services.pubsub,
  COMPUTE_ENDPOINT: services.cloud.compute.url,
  ...databasesOf(prefix),
  ...topicsOf(prefix),
  // Everything here lives on loopback, External proxies included.
  ALLOW_PRIVATE_ENDPOINTS: 'true',
  METADATA_SERVER_DETECTION: 'none',
  ...settings,
});

/** What calls the functions, which have to be there first. */
const connect = async (
  owner: AsyncDisposableStack,
  { urls }: Deployments,
  { prefix = '', scheduled = true }: InstallationOptions,
  log: Log,
): Promise<void> => {
  const dispatcher = await startDispatcher({
    projectId: PROJECT,
    subscriptions: subscriptionsOf(prefix),
    urlOf: (target) => urls[target],
    log,
  });
  owner.defer(() => dispatcher.stop());
  if (!scheduled) return;
  const jobs = (['health', 'gc'] as const).map((name) => ({
    name,
    url: `${urls[name]}/`,
    attemptDeadlineSeconds: 180,
  }));
  const scheduler = startScheduler(jobs, log);
  owner.defer(() => scheduler.stop());
};

/** Starts one; it ends with its owner. */
export const startInstallation = async (
  owner: AsyncDisposableStack,
  options: InstallationOptions,
  { services, runDir, progress, log }: Place,
): Promise<Installation> => {
  const { id, prefix = '', settingsOf, link } = options;
  await mkdir(runDir, { recursive: true });
  const deployments = await deployAll({
    owner,
    runDir,
    services,
    settings: settingsFor(options, services),
    ...(settingsOf ? { settingsOf } : {}),
    ...(link ? { link } : {}),
    // Topics have to exist before anybody publishes, and functions before anybody pushes.
    beforeWatcher: (functions) => connect(owner, functions, options, log),
    note: (line) => progress.note(`  ! ${line}`),
  });
  const { FIRESTORE_DATABASE, CREDENTIALS_DATABASE } = databasesOf(prefix);
  return {
    id,
    deployments,
    databaseId: FIRESTORE_DATABASE,
    credentialsDatabaseId: CREDENTIALS_DATABASE,
    ...(link ? { link } : {}),
  };
};
