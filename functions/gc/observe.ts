/** All reads of one run. Their order matters: machines, then records, then Proxies. */

import type { Clock } from '#shared/app/clock.ts';
import type { Log } from '#shared/app/log.ts';
import type { MachineProvider } from '#shared/domain/machine.ts';
import { labelsHash } from '#shared/domain/observed.ts';
import type { InstallationStore } from '#shared/firestore/installations.ts';
import type { RecordStore, StoredRecord } from '#shared/firestore/records.ts';
import type { SightingStore } from '#shared/firestore/sightings.ts';
import type { Cluster, ProxyObject } from '#shared/kubernetes/cluster.ts';

import type {
  ClusterIdentity,
  Limits,
  Observation,
  ProviderListing,
  ProxyListing,
  ProxySummary,
} from './observation.ts';

/** Where a run reads from. */
export interface Sources {
  readonly installation: string;
  readonly namespaces: readonly string[];
  readonly limits: Limits;
  readonly providers: readonly MachineProvider[];
  readonly cluster: Pick<Cluster, 'listProxies' | 'getProxy' | 'clusterId'>;
  readonly records: Pick<RecordStore, 'all' | 'read'>;
  readonly sightings: Pick<SightingStore, 'all' | 'add' | 'remove'>;
  readonly installations: InstallationStore;
  readonly clock: Clock;
  readonly log: Log;
}

/** The observation, and the stored records with the versions that a sweep is judged against. */
export interface Reading {
  readonly observation: Observation;
  readonly stored: readonly StoredRecord[];
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const listMachines = async (provider: MachineProvider, { clock, log }: Sources): Promise<ProviderListing> => {
  const listedAt = clock.now();
  try {
    return { kind: 'listed', provider: provider.name, listedAt, fleet: await provider.list() };
  } catch (error) {
    log.error('machines could not be listed', error, { provider: provider.name });
    return { kind: 'unknown', provider: provider.name, listedAt, message: messageOf(error) };
  }
};

export const summaryOf = ({ metadata, status }: ProxyObject): ProxySummary => {
  const { namespace, name, uid, generation } = metadata;
  const observed = status?.observed;
  return {
    ref: { namespace, name, uid },
    generation,
    deleting: metadata.deletionTimestamp !== undefined,
    covered: observed?.generation === generation && observed.labelsHash === labelsHash(metadata.labels),
    ...(status?.installation === undefined ? {} : { owner: status.installation }),
  };
};

const listProxies = async ({ cluster, namespaces, log }: Sources): Promise<ProxyListing> => {
  try {
    const proxies = await cluster.listProxies(namespaces);
    return { kind: 'listed', proxies: proxies.map(summaryOf) };
  } catch (error) {
    log.error('Proxies could not be listed', error);
    return { kind: 'unknown', message: messageOf(error) };
  }
};

const identifyCluster = async ({ cluster, installations, log }: Sources): Promise<ClusterIdentity> => {
  try {
    const [id, remembered] = await Promise.all([cluster.clusterId(), installations.cluster()]);
    if (remembered === undefined) return { kind: 'first', id };
    return remembered === id ? { kind: 'known', id } : { kind: 'changed', id, remembered };
  } catch (error) {
    log.error('the cluster could not be identified', error);
    return { kind: 'unknown', message: messageOf(error) };
  }
};

/** Reads everything. A list that fails is unknown; only the database, without which there is no run, makes this throw. */
export const observe = async (sources: Sources): Promise<Reading> => {
  const { installation, limits, providers, records, sightings, clock } = sources;
  const now = clock.now();
  const listings = await Promise.all(providers.map((provider) => listMachines(provider, sources)));
  const [selection, seen] = await Promise.all([records.all(installation), sightings.all()]);
  const [proxies, cluster] = await Promise.all([listProxies(sources), identifyCluster(sources)]);
  return {
    stored: selection.records,
    observation: {
      installation,
      now,
      limits,
      listings,
      records: selection.records.map(({ record, version, readTime }) => ({
        record,
        updatedAt: version.updateTime.toMillis(),
        readAt: readTime,
      })),
      unreadable: selection.unreadable,
      proxies,
      cluster,
      sightings: seen,
    },
  };
};
