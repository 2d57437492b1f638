/** Google's APIs on this machine, as far as Terraform's provider calls them for an installation. */

import { computeRoutes } from './compute.ts';
import { containerRoutes } from './container.ts';
import { firestoreRoutes } from './firestore.ts';
import { functionRoutes } from './functions.ts';
import { iamRoutes } from './iam.ts';
import { observabilityRoutes } from './observability.ts';
import { operationRoutes } from './operations.ts';
import { pubsubNames, pubsubRoutes } from './pubsub.ts';
import { serve, type Call } from './server.ts';
import { serviceUsageRoutes } from './service-usage.ts';
import { storageRoutes } from './storage.ts';
import { makeWorld, type Resource, type World } from './world.ts';

export interface GoogleApis {
  /** What the provider takes from the environment to call these APIs instead of Google's, with a token that nobody checks. */
  readonly environment: Readonly<Record<string, string>>;
  readonly world: World;
  calls(): readonly Call[];
  /** Everything that is there, by name, policies too; but no deleted role, whose id stays taken. */
  names(): Promise<readonly string[]>;
  stop(): Promise<void>;
}

export interface GoogleApisOptions {
  readonly projectId: string;
  /** Of the Pub/Sub emulator. */
  readonly pubsubHost: string;
  /** Of each answer, in milliseconds; default 1. */
  readonly latencyMs?: number;
}

/** The provider's names of the APIs, and where each begins. */
const ENDPOINTS = {
  ARTIFACT_REGISTRY: 'artifactregistry/v1',
  CLOUD_BILLING: 'cloudbilling/v1',
  CLOUD_RUN_V2: 'run/v2',
  CLOUD_SCHEDULER: 'cloudscheduler/v1',
  CLOUDFUNCTIONS2: 'cloudfunctions/v2',
  COMPUTE: 'compute/v1',
  CONTAINER: 'container/v1',
  FIRESTORE: 'firestore/v1',
  IAM: 'iam/v1',
  IAM_BETA: 'iam/v1',
  LOGGING: 'logging/v2',
  MONITORING: 'monitoring',
  PUBSUB: 'pubsub/v1',
  RESOURCE_MANAGER: 'cloudresourcemanager/v1',
  RESOURCE_MANAGER_V3: 'cloudresourcemanager/v3',
  SERVICE_USAGE: 'serviceusage/v1',
  STORAGE: 'storage/v1',
} as const;

/** What there is, and what a person needs to tell one from another where a name is only a number. */
const describe = ([key, { displayName }]: readonly [string, Resource]): string =>
  typeof displayName === 'string' ? `${key} (${displayName})` : key;

export const startGoogleApis = async (options: GoogleApisOptions): Promise<GoogleApis> => {
  const { projectId, pubsubHost, latencyMs = 1 } = options;
  const world = makeWorld({ projectId, pubsubHost });
  const calls: Call[] = [];
  const routes = [
    ...operationRoutes,
    ...serviceUsageRoutes,
    ...iamRoutes,
    ...pubsubRoutes,
    ...firestoreRoutes,
    ...functionRoutes,
    ...storageRoutes,
    ...computeRoutes,
    ...containerRoutes,
    ...observabilityRoutes,
  ];
  const { port, stop } = await serve(world, routes, { latencyMs, onCall: (call) => void calls.push(call) });
  const url = `http://127.0.0.1:${port}`;
  return {
    environment: {
      GOOGLE_OAUTH_ACCESS_TOKEN: 'token',
      ...Object.fromEntries(
        Object.entries(ENDPOINTS).map(([name, path]) => [
          `GOOGLE_${name}_CUSTOM_ENDPOINT`,
          `${url}/${path}/`,
        ]),
      ),
    },
    world,
    calls: () => calls,
    names: async () =>
      [
        ...[...world.resources].filter(([, { deleted }]) => deleted !== true).map(describe),
        ...[...world.policies.keys()].map((key) => `policy of ${key}`),
        ...(await pubsubNames(world)),
      ].toSorted(),
    stop,
  };
};
