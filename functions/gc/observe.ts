/** All reads of one run. Their order matters: machines, then records, then leftovers, then Proxies. */

import type { Clock } from '#shared/app/clock.ts';
import { hasCode } from '#shared/app/errors.ts';
import type { Log } from '#shared/app/log.ts';
import type { MachineProvider } from '#shared/domain/machine.ts';
import { labelsHash } from '#shared/domain/observed.ts';
import type { InstallationStore } from '#shared/firestore/installations.ts';
import type { Fleet, FleetIndex } from '#shared/firestore/fleet-index.ts';
import type { RecordStore } from '#shared/firestore/records.ts';
import type { SightingStore } from '#shared/firestore/sightings.ts';
import type { Cluster, ProxyObject } from '#shared/kubernetes/cluster.ts';

import { looksAtLeftovers } from './leftovers.ts';
import type {
  ClusterIdentity,
  LeftoversOf,
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
  readonly records: Pick<RecordStore, 'read'>;
  readonly fleet: FleetIndex;
  readonly sightings: Pick<SightingStore, 'all' | 'add' | 'remove'>;
  readonly installations: InstallationStore;
  readonly clock: Clock;
  readonly log: Log;
}

/** The observation, and the records as they were read, for the index of the next run. */
export interface Reading {
  readonly observation: Observation;
  readonly fleet: Fleet;
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

const listLeftovers = async (provider: MachineProvider, { log }: Sources): Promise<LeftoversOf> => {
  try {
    return { kind: 'listed', provider: provider.name, ...(await provider.listLeftovers()) };
  } catch (error) {
    log.error('leftovers could not be listed', error, { provider: provider.name });
    return { kind: 'unknown', provider: provider.name, message: messageOf(error) };
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

/** Rights in a namespace go with it, at once, while its Proxies wait for their machines to be deleted. */
const LOST_RIGHTS =
  '. If that namespace was deleted, or its RoleBindings: bind the roles of provision and gc for the whole cluster until ' +
  'its Proxies are gone, then take it out of PROXY_NAMESPACES';

const listProxies = async ({ cluster, namespaces, log }: Sources): Promise<ProxyListing> => {
  try {
    const proxies = await cluster.listProxies(namespaces);
    return { kind: 'listed', proxies: proxies.map(summaryOf) };
  } catch (error) {
    log.error('Proxies could not be listed', error);
    const remedy = hasCode(error, 'Unauthorised') ? LOST_RIGHTS : '';
    return { kind: 'unknown', message: `${messageOf(error)}${remedy}` };
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

/**
 * Reads everything; leftovers only when they are due, or `whole`. A list that fails is unknown; only the database, without
 * which there is no run, makes this throw.
 */
export const observe = async (sources: Sources, whole: boolean): Promise<Reading> => {
  const { installation, limits, providers, sightings, clock } = sources;
  const now = clock.now();
  const listings = await Promise.all(providers.map((provider) => listMachines(provider, sources)));
  const [fleet, seen] = await Promise.all([sources.fleet.read(), sightings.all()]);
  const looks = whole || looksAtLeftovers({ installation, now, sightings: seen });
  const leftovers = looks
    ? await Promise.all(providers.map((provider) => listLeftovers(provider, sources)))
    : undefined;
  const [proxies, cluster] = await Promise.all([listProxies(sources), identifyCluster(sources)]);
  return {
    fleet,
    observation: {
      installation,
      namespaces: sources.namespaces,
      now,
      limits,
      listings,
      ...(leftovers ? { leftovers } : {}),
      records: fleet.records.map((indexed) => ({ ...indexed, readAt: fleet.readTime })),
      unreadable: fleet.unreadable,
      proxies,
      cluster,
      sightings: seen,
    },
  };
};
