/** What one run has read, as plain data. What could not be read is unknown: it is never an empty list. */

import type { FleetListing, Leftover, LeftoverListing, Machine } from '#shared/domain/machine.ts';
import type { ManagedProvider, ProxyRef } from '#shared/domain/proxy.ts';
import type { ProxyRecord } from '#shared/domain/record.ts';

/** All machines of one provider, or why they could not be listed. `listedAt` is taken before the list began. */
export type ProviderListing = { readonly provider: ManagedProvider; readonly listedAt: number } & (
  | { readonly kind: 'listed'; readonly fleet: FleetListing }
  | { readonly kind: 'unknown'; readonly message: string }
);

/** Everything that machines of one provider left behind, or why it could not be listed. */
export type LeftoversOf = { readonly provider: ManagedProvider } & (
  ({ readonly kind: 'listed' } & LeftoverListing) | { readonly kind: 'unknown'; readonly message: string }
);

/** The part of a Proxy that is judged here. */
export interface ProxySummary {
  readonly ref: ProxyRef;
  readonly generation: number;
  readonly deleting: boolean;
  /** `status.observed` speaks of this very state. */
  readonly covered: boolean;
  /** `status.installation`, once somebody has taken the Proxy. */
  readonly owner?: string;
}

export type ProxyListing =
  | { readonly kind: 'listed'; readonly proxies: readonly ProxySummary[] }
  | { readonly kind: 'unknown'; readonly message: string };

/** Whether the cluster that answers is the one that this installation has always had. */
export type ClusterIdentity =
  | { readonly kind: 'known'; readonly id: string }
  | { readonly kind: 'first'; readonly id: string }
  | { readonly kind: 'changed'; readonly id: string; readonly remembered: string }
  | { readonly kind: 'unknown'; readonly message: string };

/** `updatedAt` and `readAt` are the database's own milliseconds. */
export interface ObservedRecord {
  readonly record: ProxyRecord;
  readonly updatedAt: number;
  readonly readAt: number;
}

export interface Limits {
  readonly minAgeMs: number;
  readonly sightingGapMs: number;
  readonly maxDeletions: number;
  readonly maxNudges: number;
  readonly tombstoneAgeMs: number;
}

/** Read in this order: machines, records, leftovers, Proxies. So what a later list lacks was not merely too young for it. */
export interface Observation {
  readonly installation: string;
  /** `['*']` or the namespaces whose Proxies are listed. */
  readonly namespaces: readonly string[];
  readonly now: number;
  readonly limits: Limits;
  readonly listings: readonly ProviderListing[];
  /** Absent when this run did not look. */
  readonly leftovers?: readonly LeftoversOf[];
  readonly records: readonly ObservedRecord[];
  /** UIDs of records that are there but cannot be read. */
  readonly unreadable: readonly string[];
  readonly proxies: ProxyListing;
  readonly cluster: ClusterIdentity;
  /** When each sighting was made, by its key. */
  readonly sightings: ReadonlyMap<string, number>;
}

/** A machine with the provider that showed it. */
export interface FoundMachine {
  readonly provider: ManagedProvider;
  readonly machine: Machine;
}

/** The same for what a machine left behind. */
export interface FoundLeftover {
  readonly provider: ManagedProvider;
  readonly leftover: Leftover;
}

export type Found = FoundMachine | FoundLeftover;

export const isMachine = <F extends Found>(found: F): found is Extract<F, FoundMachine> => 'machine' in found;

/** What is judged of both; `id` is the provider's unique one. */
export interface Identity extends Leftover {
  readonly kind: 'machine' | 'leftover';
}

export const identityOf = (found: Found): Identity =>
  isMachine(found)
    ? { ...found.machine, kind: 'machine', id: found.machine.instanceId }
    : { ...found.leftover, kind: 'leftover' };

/** Beginning of the keys of leftovers' sightings. */
export const LEFTOVER_PREFIX = 'leftover:';
/** Beginning of the marks that runs which delete machines leave among the sightings. */
export const DELETIONS_PREFIX = 'deletions:';

/** Key of the sighting of a machine without a Proxy; another machine under the same name has another key. */
export const machineKey = ({ provider, machine }: FoundMachine): string =>
  `machine:${provider}:${machine.instanceId}`;

/** The same for anything without a Proxy. */
export const foundKey = (found: Found): string =>
  isMachine(found) ? machineKey(found) : `${LEFTOVER_PREFIX}${found.provider}:${found.leftover.id}`;

/** The mark of a run that began at `now` (ms) and deletes machines. */
export const deletionsMark = (now: number): string => `${DELETIONS_PREFIX}${now}`;

/** Key of the sighting of a Proxy that nobody has dealt with; an edit or a deletion gives another key. */
export const proxyKey = ({ ref, generation, deleting }: ProxySummary): string =>
  `proxy:${ref.uid}:${deleting ? 'deleting' : generation}`;

/** Living records in namespaces that we do not have any more: whether their Proxies live, nobody here may ask. */
export const strandedIn = ({ namespaces, records }: Observation): readonly ProxyRef[] =>
  namespaces.includes('*')
    ? []
    : records.flatMap(({ record: { ref, gone } }) =>
        gone || namespaces.includes(ref.namespace) ? [] : [ref],
      );

/** Proxies in our namespaces that another installation has, as their status says: everything about them is left alone. */
export const othersIn = ({ installation, proxies }: Observation): readonly ProxySummary[] =>
  proxies.kind === 'unknown'
    ? []
    : proxies.proxies.filter(({ owner }) => owner !== undefined && owner !== installation);
