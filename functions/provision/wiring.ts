/** From configuration to what the handler takes. */

import type { Metrics } from '#shared/app/metrics.ts';
import { closeFirestore, openFirestore } from '#shared/firestore/client.ts';
import { credentialStore } from '#shared/firestore/credentials.ts';
import { readLeaseCounts } from '#shared/firestore/lease-counts.ts';
import { recordStore } from '#shared/firestore/records.ts';
import { readQueue, type Waiting } from '#shared/firestore/replacements.ts';
import { countCalls } from '#shared/providers/counted.ts';
import type { Providers } from '#shared/providers/providers.ts';

import type { Config } from './config.ts';

/** The same, with their calls counted. */
export const countedProviders = (providers: Providers, metrics: Metrics): Providers =>
  countCalls(providers, ({ provider, call, result }) =>
    metrics.count('provider_calls', { provider, call, result }),
  );

export const settingsOf = (config: Config) => ({
  projectId: config.GOOGLE_CLOUD_PROJECT,
  databaseId: config.FIRESTORE_DATABASE,
  credentialsDatabaseId: config.CREDENTIALS_DATABASE,
  installation: config.INSTALLATION_ID,
  namespaces: config.PROXY_NAMESPACES,
  changesTopic: config.PROXY_CHANGES_TOPIC,
  probesTopic: config.PROXY_PROBES_TOPIC,
  allowPrivateEndpoints: config.ALLOW_PRIVATE_ENDPOINTS,
  maxReplacingPercent: config.MAX_REPLACING_PERCENT,
  ...(config.COMPUTE_ENDPOINT === undefined ? {} : { endpoint: config.COMPUTE_ENDPOINT }),
});

export interface StoreOptions {
  readonly projectId: string;
  readonly databaseId: string;
  readonly credentialsDatabaseId: string;
}

/** The records and the credentials, each in its own database. */
export const openStores = ({ projectId, databaseId, credentialsDatabaseId }: StoreOptions) => {
  const db = openFirestore({ projectId, databaseId });
  const secretDb = openFirestore({ projectId, databaseId: credentialsDatabaseId });
  return {
    records: recordStore(db),
    credentials: credentialStore(secretDb),
    leaseCounts: (uid: string) => readLeaseCounts(db, uid),
    queue: (installation: string, waiting: Waiting) => readQueue(db, installation, waiting),
    close: async () => {
      await Promise.all([closeFirestore(db), closeFirestore(secretDb)]);
    },
  };
};
