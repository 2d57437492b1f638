/** From settings to the stores that the handler takes. */

import type { Clock } from '#shared/app/clock.ts';
import { credentialStore } from '#shared/firestore/credentials.ts';
import { closeFirestore, openFirestore } from '#shared/firestore/client.ts';
import { STUCK_CALLS, guarded, makeGuard } from '#shared/firestore/guard.ts';
import { idempotencyStore } from '#shared/firestore/idempotency.ts';
import { leaseStore } from '#shared/firestore/leases.ts';
import { recordStore } from '#shared/firestore/records.ts';
import { serverTime } from '#shared/firestore/server-time.ts';
import { viewStore } from '#shared/firestore/views.ts';

export interface StoreOptions {
  readonly projectId: string;
  readonly databaseId: string;
  readonly credentialsDatabaseId: string;
  readonly clock: Clock;
  /** Called when calls of one database have hung for some time, and none has got through. */
  readonly onStuck: () => void;
}

/** Many requests run at once here, and one slow moment meets all of them: what counts is that it does not end. */
export const STUCK_MS = 20_000;

/** Both databases, each over its own client, and the time that their replies tell. */
export const openStores = (options: StoreOptions) => {
  const { projectId, databaseId, credentialsDatabaseId, clock, onStuck } = options;
  const db = openFirestore({ projectId, databaseId });
  const secrets = openFirestore({ projectId, databaseId: credentialsDatabaseId });
  const time = serverTime(clock);
  const idempotency = idempotencyStore(db);
  const newGuard = () => makeGuard(STUCK_CALLS, onStuck, { ms: STUCK_MS, clock });
  const guard = newGuard();
  return {
    time,
    idempotency: guarded(idempotency, guard),
    leases: guarded(leaseStore(db, time, idempotency), guard),
    views: guarded(viewStore(db, time), guard),
    records: guarded(recordStore(db), guard),
    credentials: guarded(credentialStore(secrets), newGuard()),
    close: async (): Promise<void> => {
      await Promise.all([closeFirestore(db), closeFirestore(secrets)]);
    },
  };
};
