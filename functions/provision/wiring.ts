/** From settings to what the handler takes. */

import { closeFirestore, openFirestore } from '#shared/firestore/client.ts';
import { credentialStore } from '#shared/firestore/credentials.ts';
import { installationStore } from '#shared/firestore/installations.ts';
import { readLeaseCounts } from '#shared/firestore/lease-counts.ts';
import { recordStore } from '#shared/firestore/records.ts';
import { readQueue, type Waiting } from '#shared/firestore/replacements.ts';

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
    rememberedCluster: (installation: string) => installationStore(db, installation).cluster(),
    queue: (installation: string, waiting: Waiting) => readQueue(db, installation, waiting),
    close: async () => {
      await Promise.all([closeFirestore(db), closeFirestore(secretDb)]);
    },
  };
};
