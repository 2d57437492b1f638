/** From configuration to what the handler takes. */

import type { Metrics } from '#shared/app/metrics.ts';
import { acquireLock } from '#shared/firestore/locks.ts';
import { installationStore } from '#shared/firestore/installations.ts';
import { closeFirestore, openFirestore } from '#shared/firestore/client.ts';
import { fleetIndex } from '#shared/firestore/fleet-index.ts';
import { recordStore } from '#shared/firestore/records.ts';
import { sightingStore } from '#shared/firestore/sightings.ts';
import { sweepTombstones, type Tombstone } from '#shared/firestore/sweep.ts';
import { countCalls } from '#shared/providers/counted.ts';
import type { Providers } from '#shared/providers/providers.ts';

import type { Config } from './config.ts';
import type { Limits } from './observation.ts';

/** The same, with their calls counted. */
export const countedProviders = (providers: Providers, metrics: Metrics): Providers =>
  countCalls(providers, ({ provider, call, result }) =>
    metrics.count('gc_provider_calls', { provider, call, result }),
  );

/** Publishing this many takes a few seconds; what is left over is found again in the next minute. */
const MAX_NUDGES = 5000;
const TOMBSTONE_AGE_MS = 60 * 60 * 1000;

export const limitsOf = (config: Config): Limits => ({
  minAgeMs: config.GC_MIN_AGE_SECONDS * 1000,
  sightingGapMs: config.GC_SIGHTING_GAP_SECONDS * 1000,
  maxDeletions: config.GC_MAX_DELETIONS,
  maxNudges: MAX_NUDGES,
  tombstoneAgeMs: TOMBSTONE_AGE_MS,
});

export const settingsOf = (config: Config) => ({
  projectId: config.GOOGLE_CLOUD_PROJECT,
  databaseId: config.FIRESTORE_DATABASE,
  installation: config.INSTALLATION_ID,
  namespaces: config.PROXY_NAMESPACES,
  changesTopic: config.PROXY_CHANGES_TOPIC,
  probesTopic: config.PROXY_PROBES_TOPIC,
  ...(config.COMPUTE_ENDPOINT === undefined ? {} : { endpoint: config.COMPUTE_ENDPOINT }),
  limits: limitsOf(config),
});

/** Everything that is kept in Firestore. */
export const storesOn = (db: ReturnType<typeof openFirestore>, installation: string) => {
  const records = recordStore(db);
  return {
    records,
    fleet: fleetIndex(db, records, installation),
    sightings: sightingStore(db, installation),
    installations: installationStore(db, installation),
    lock: (holder: string, ttlMs: number) => acquireLock(db, `gc-${installation}`, holder, ttlMs),
    sweep: (tombstones: readonly Tombstone[]) => sweepTombstones(db, tombstones),
    close: () => closeFirestore(db),
  };
};

/** The same, over a client of its own. */
export const openStores = ({
  projectId,
  databaseId,
  installation,
}: {
  readonly projectId: string;
  readonly databaseId: string;
  readonly installation: string;
}) => storesOn(openFirestore({ projectId, databaseId }), installation);
