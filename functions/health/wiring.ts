/** The stores of health, with an eye on channels that hang. */

import { closeFirestore, openFirestore } from '#shared/firestore/client.ts';
import { credentialStore } from '#shared/firestore/credentials.ts';
import { STUCK_CALLS, guarded, makeGuard } from '#shared/firestore/guard.ts';
import { recordStore } from '#shared/firestore/records.ts';
import { roundStore } from '#shared/firestore/rounds.ts';
import { viewWriter } from '#shared/firestore/views.ts';

import type { Config } from './config.ts';

/** `onStuck` is called when calls of one database hang in a row. */
export const openStores = (config: Config, onStuck: () => void) => {
  const projectId = config.GOOGLE_CLOUD_PROJECT;
  const db = openFirestore({ projectId, databaseId: config.FIRESTORE_DATABASE });
  const secrets = openFirestore({ projectId, databaseId: config.CREDENTIALS_DATABASE });
  const guard = makeGuard(STUCK_CALLS, onStuck);
  return {
    stores: {
      records: guarded(recordStore(db), guard),
      rounds: guarded(roundStore(db), guard),
      views: guarded(viewWriter(db), guard),
      credentials: guarded(credentialStore(secrets), makeGuard(STUCK_CALLS, onStuck)),
    },
    close: () => Promise.allSettled([closeFirestore(db), closeFirestore(secrets)]),
  };
};
