/** The plan of one run: what to delete, whom to nudge, what to remember. Pure; read this first. */

import type { ProxyRef } from '#shared/domain/proxy.ts';

import { planNudges, type Nudge } from './nudges.ts';
import { isOurs, judgeMachines, sightedMachines, type Judgement } from './orphans.ts';
import { othersIn, strandedIn, type Observation, type ProxySummary } from './observation.ts';

export const FREEZE_REASONS = ['ClusterChanged', 'MostOfFleet', 'TooMany'] as const;

export interface Freeze {
  readonly reason: (typeof FREEZE_REASONS)[number];
  readonly message: string;
}

export interface Plan {
  /** Every listed machine with the rule that keeps or condemns it. */
  readonly judgements: readonly Judgement[];
  /** The condemned among them, in a stable order. */
  readonly deletions: readonly Judgement[];
  /** Not empty: nothing is deleted unless a person confirms exactly these deletions. */
  readonly frozen: readonly Freeze[];
  /** Lists that could not be had, in words; while there are any, the run did not do its whole job. */
  readonly doubts: readonly string[];
  readonly nudges: readonly Nudge[];
  /** Proxies in our namespaces whose status names another installation. */
  readonly others: readonly ProxySummary[];
  /** Living records in namespaces that we do not have any more. */
  readonly stranded: readonly ProxyRef[];
  readonly sightings: { readonly add: readonly string[]; readonly remove: readonly string[] };
  /** Tombstones that have served their time, each of its write at `updatedAt` (the database's milliseconds). */
  readonly sweep: readonly { readonly uid: string; readonly updatedAt: number }[];
  /** Set on the first run of an installation: the cluster to remember. */
  readonly rememberCluster?: string;
}

/** A fleet smaller than this may lose most of its machines at once without suspicion. */
const FLEET_THAT_COUNTS = 4;

const suspicions = (
  { cluster, limits, installation }: Observation,
  judgements: readonly Judgement[],
  condemned: number,
): readonly Freeze[] => {
  const fleet = judgements.filter(isOurs).length;
  const found: Freeze[] = [];
  if (cluster.kind === 'changed')
    found.push({
      reason: 'ClusterChanged',
      message:
        `This installation belongs to cluster ${cluster.remembered}, but cluster ${cluster.id} answered. ` +
        `If it has moved for good, delete the document installations/${installation} in Firestore.`,
    });
  if (condemned > 0 && fleet >= FLEET_THAT_COUNTS && condemned * 2 > fleet)
    found.push({
      reason: 'MostOfFleet',
      message: `${condemned} of ${fleet} machines have lost their Proxy: more than half of the fleet.`,
    });
  if (condemned > limits.maxDeletions)
    found.push({
      reason: 'TooMany',
      message: `${condemned} machines would be deleted, more than ${limits.maxDeletions} in one run.`,
    });
  return found;
};

const doubtsOf = ({ listings, proxies, cluster, unreadable }: Observation): readonly string[] => [
  ...listings.flatMap((listing) => {
    if (listing.kind === 'unknown')
      return [`machines of ${listing.provider} could not be listed: ${listing.message}`];
    const { partial, unknownZones } = listing.fleet;
    return [
      ...(partial ? [`the list of machines of ${listing.provider} is not complete`] : []),
      ...unknownZones.map((zone) => `zone ${zone} of ${listing.provider} could not be seen`),
    ];
  }),
  ...(proxies.kind === 'unknown' ? [`Proxies could not be listed: ${proxies.message}`] : []),
  ...(cluster.kind === 'unknown' ? [`the cluster is not known: ${cluster.message}`] : []),
  ...unreadable.map((uid) => `record ${uid} cannot be read`),
];

/** A tombstone stays while anything listed still carries its UID, since it is the way from a UID to a name. */
const tombstones = (observation: Observation, judgements: readonly Judgement[]): Plan['sweep'] => {
  const { listings, proxies, records, limits } = observation;
  const complete = listings.every(
    (listing) =>
      listing.kind === 'listed' && !listing.fleet.partial && listing.fleet.unknownZones.length === 0,
  );
  if (!complete || proxies.kind === 'unknown') return [];
  const inUse = new Set([
    ...judgements.map(({ machine }) => machine.uid),
    ...proxies.proxies.map(({ ref }) => ref.uid),
  ]);
  return records
    .filter(
      ({ record, updatedAt, readAt }) =>
        record.gone && !inUse.has(record.ref.uid) && readAt - updatedAt >= limits.tombstoneAgeMs,
    )
    .map(({ record, updatedAt }) => ({ uid: record.ref.uid, updatedAt }));
};

/** A sighting ends when what was seen has a Proxy again or is gone; a run in doubt ends none. */
const staleSightings = (
  { sightings }: Observation,
  doubts: readonly string[],
  keep: readonly string[],
): readonly string[] => {
  if (doubts.length > 0) return [];
  const kept = new Set(keep);
  return [...sightings.keys()].filter((key) => !kept.has(key));
};

const identityOf = ({ provider, machine }: Judgement): string =>
  `${provider}/${machine.zone}/${machine.name}/${machine.instanceId}`;

export const decide = (observation: Observation): Plan => {
  const judgements = judgeMachines(observation);
  const deletions = judgements
    .filter(({ rule }) => rule === 'Orphan')
    .sort((a, b) => (identityOf(a) < identityOf(b) ? -1 : 1));
  const doubts = doubtsOf(observation);
  const machines = sightedMachines(judgements);
  const { nudges, sighted } = planNudges(observation);
  const others = othersIn(observation);
  const stranded = strandedIn(observation);
  // Nobody here would deal with it.
  const leftAlone = new Set([...others.map(({ ref }) => ref.uid), ...stranded.map(({ uid }) => uid)]);
  return {
    judgements,
    deletions,
    frozen: suspicions(observation, judgements, deletions.length),
    doubts,
    nudges: nudges.filter(({ ref }) => !leftAlone.has(ref.uid)),
    others,
    stranded,
    sightings: {
      add: [...machines.add, ...sighted.add],
      remove: staleSightings(observation, doubts, [...machines.keep, ...sighted.keep]),
    },
    sweep: tombstones(observation, judgements),
    ...(observation.cluster.kind === 'first' ? { rememberCluster: observation.cluster.id } : {}),
  };
};
