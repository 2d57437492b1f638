/** The plan of one run: what to delete, whom to nudge, what to remember. Pure; read this first. */

import type { ProxyRef } from '#shared/domain/proxy.ts';

import { planNudges, type Nudge } from './nudges.ts';
import { freshMarks, leftoverKeys } from './leftovers.ts';
import { areComplete, listDoubts } from './lists.ts';
import {
  isOurs,
  judgeAll,
  sightedIn,
  type Judgement,
  type LeftoverJudgement,
  type MachineJudgement,
} from './orphans.ts';
import {
  identityOf,
  isMachine,
  othersIn,
  strandedIn,
  type Observation,
  type ProxySummary,
} from './observation.ts';

export const FREEZE_REASONS = ['ClusterChanged', 'MostOfFleet', 'TooMany'] as const;

export interface Freeze {
  readonly reason: (typeof FREEZE_REASONS)[number];
  readonly message: string;
}

export interface Plan {
  /** Every listed machine with the rule that keeps or condemns it. */
  readonly judgements: readonly MachineJudgement[];
  /** The same for what machines left behind; absent when the run did not look. */
  readonly leftovers?: readonly LeftoverJudgement[];
  /** The condemned among both, in a stable order. */
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

/**
 * Leftovers are no part of the fleet, condemned or not: many that are kept would hide that all machines are to go, and many
 * that go, which nothing uses, say nothing of the machines. The cap is on all deletions.
 */
const suspicions = (
  { cluster, limits, installation }: Observation,
  machines: readonly MachineJudgement[],
  deletions: readonly Judgement[],
): readonly Freeze[] => {
  const fleet = machines.filter(isOurs).length;
  const condemned = deletions.filter(isMachine).length;
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
  if (deletions.length > limits.maxDeletions)
    found.push({
      reason: 'TooMany',
      message:
        `${condemned} machines and ${deletions.length - condemned} leftovers would be deleted, ` +
        `more than ${limits.maxDeletions} in one run.`,
    });
  return found;
};

const doubtsOf = (observation: Observation): readonly string[] => {
  const { proxies, cluster, unreadable } = observation;
  return [
    ...listDoubts(observation),
    ...(proxies.kind === 'unknown' ? [`Proxies could not be listed: ${proxies.message}`] : []),
    ...(cluster.kind === 'unknown' ? [`the cluster is not known: ${cluster.message}`] : []),
    ...unreadable.map((uid) => `record ${uid} cannot be read`),
  ];
};

/** A tombstone stays while anything listed still carries its UID, since it is the way from a UID to a name. */
const tombstones = (observation: Observation, judgements: readonly Judgement[]): Plan['sweep'] => {
  const { proxies, records, limits } = observation;
  if (!areComplete(observation) || proxies.kind === 'unknown') return [];
  const inUse = new Set([
    ...judgements.map((judgement) => identityOf(judgement).uid),
    ...proxies.proxies.map(({ ref }) => ref.uid),
  ]);
  return records
    .filter(
      ({ record, updatedAt, readAt }) =>
        record.gone && !inUse.has(record.ref.uid) && readAt - updatedAt >= limits.tombstoneAgeMs,
    )
    .map(({ record, updatedAt }) => ({ uid: record.ref.uid, updatedAt }));
};

/** A sighting ends when what was seen has a Proxy again or is gone; a run in doubt, or that did not look, ends none. */
const staleSightings = (
  observation: Observation,
  doubts: readonly string[],
  keep: readonly string[],
): readonly string[] => {
  if (doubts.length > 0) return [];
  const unseen = observation.leftovers ? [] : leftoverKeys(observation);
  const kept = new Set([...keep, ...unseen, ...freshMarks(observation)]);
  return [...observation.sightings.keys()].filter((key) => !kept.has(key));
};

const orderOf = (judgement: Judgement): string => {
  const { kind, zone, name, id } = identityOf(judgement);
  return `${kind}/${judgement.provider}/${zone}/${name}/${id}`;
};

export const decide = (observation: Observation): Plan => {
  const { machines, leftovers } = judgeAll(observation);
  const all: readonly Judgement[] = [...machines, ...(leftovers ?? [])];
  const deletions = all
    .filter(({ rule }) => rule === 'Orphan')
    .sort((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1));
  const doubts = doubtsOf(observation);
  const seen = sightedIn(all);
  const { nudges, sighted } = planNudges(observation);
  const others = othersIn(observation);
  const stranded = strandedIn(observation);
  // Nobody here would deal with it.
  const leftAlone = new Set([...others.map(({ ref }) => ref.uid), ...stranded.map(({ uid }) => uid)]);
  return {
    judgements: machines,
    ...(leftovers ? { leftovers } : {}),
    deletions,
    frozen: suspicions(observation, machines, deletions),
    doubts,
    nudges: nudges.filter(({ ref }) => !leftAlone.has(ref.uid)),
    others,
    stranded,
    sightings: {
      add: [...seen.add, ...sighted.add],
      remove: staleSightings(observation, doubts, [...seen.keep, ...sighted.keep]),
    },
    sweep: tombstones(observation, all),
    ...(observation.cluster.kind === 'first' ? { rememberCluster: observation.cluster.id } : {}),
  };
};
