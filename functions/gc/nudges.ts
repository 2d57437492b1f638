/** Who must be looked at: each Proxy at most once per run, the most urgent reasons first. */

import type { Machine } from '#shared/domain/machine.ts';
import type { ProxyRef } from '#shared/domain/proxy.ts';
import { isNewer, placesOf, publications, type Publication } from '#shared/domain/record.ts';

import {
  proxyKey,
  type Observation,
  type ObservedRecord,
  type ProviderListing,
  type ProxySummary,
} from './observation.ts';

export const NUDGE_REASONS = [
  'MachineGone',
  'MachineNotRunning',
  'OtherMachine',
  'AddressChanged',
  'AddressShared',
  'ProxyGone',
  'Due',
  'MachineNotRecorded',
  'NoRecord',
  'NotObserved',
] as const;
export type NudgeReason = (typeof NUDGE_REASONS)[number];

export interface Nudge {
  readonly ref: ProxyRef;
  readonly reason: NudgeReason;
  /** Of the change that its record is under way with. */
  readonly traceparent?: string;
}

/** A machine that was published this shortly before the list began may be missing from it. Milliseconds. */
const LIST_LAG_MS = 15_000;

type Listed = Extract<ProviderListing, { kind: 'listed' }>;
type MachinesByName = ReadonlyMap<string, readonly Machine[]>;

/** Where a machine is without a zone, any place that could not be seen may be its own. */
const mayBeIn = (unknownZones: readonly string[], zone: string | undefined): boolean =>
  zone === undefined ? unknownZones.length > 0 : unknownZones.includes(zone);

const drift = (
  publication: Publication,
  listing: Listed,
  machines: MachinesByName,
): NudgeReason | undefined => {
  const { machine: name, zone, endpoint, publishedAt } = publication;
  if (name === undefined) return undefined;
  const machine = machines.get(name)?.find((candidate) => zone === undefined || candidate.zone === zone);
  if (!machine) {
    const seen = !listing.fleet.partial && !mayBeIn(listing.fleet.unknownZones, zone);
    return seen && publishedAt < listing.listedAt - LIST_LAG_MS ? 'MachineGone' : undefined;
  }
  if (machine.instanceId !== endpoint.instanceId) return 'OtherMachine';
  if (machine.state === 'unknown') return undefined;
  if (machine.state !== 'running') return 'MachineNotRunning';
  return machine.address === endpoint.host ? undefined : 'AddressChanged';
};

/** Of endpoints at one place only the newest can be right: who has an older one is to look again. */
const shared = (records: readonly ObservedRecord[]): readonly Nudge[] => {
  const places = records.flatMap(({ record }) => (record.gone ? [] : placesOf(record)));
  const atOnePlace = [...Map.groupBy(places, ({ host, port }) => `${host} ${port}`).values()];
  return atOnePlace.flatMap((rivals) => {
    const newest = rivals.reduce((a, b) => (isNewer(b, a) ? b : a));
    return rivals
      .filter(({ ref }) => ref.uid !== newest.ref.uid)
      .map(({ ref }): Nudge => ({ ref, reason: 'AddressShared' }));
  });
};

const byName = ({ fleet }: Listed): MachinesByName => Map.groupBy(fleet.machines, ({ name }) => name);

const drifted = (records: readonly ObservedRecord[], listing: Listed): readonly Nudge[] => {
  const machines = byName(listing);
  return records.flatMap(({ record }) => {
    if (record.gone || record.provider !== listing.provider) return [];
    const reason = publications(record)
      .map((publication) => drift(publication, listing, machines))
      .find((finding) => finding !== undefined);
    return reason ? [{ ref: record.ref, reason }] : [];
  });
};

/** Machines that carry the UID of a Proxy whose record does not know them: left over from a life cut short. */
const unrecorded = (
  { installation, now, limits }: Observation,
  listing: Listed,
  records: ReadonlyMap<string, ObservedRecord>,
): readonly Nudge[] =>
  listing.fleet.machines.flatMap((machine) => {
    const old = machine.createdAt !== undefined && now - machine.createdAt >= limits.minAgeMs;
    if (machine.installation !== installation || machine.uid === undefined || !old) return [];
    const record = records.get(machine.uid)?.record;
    if (!record || record.gone || machine.state === 'stopping') return [];
    const known = record.machines.some(
      ({ name, zones }) => name === machine.name && zones.includes(machine.zone),
    );
    return known ? [] : [{ ref: record.ref, reason: 'MachineNotRecorded' }];
  });

const due = ({ records, now }: Observation): readonly Nudge[] =>
  records
    .flatMap(({ record }) =>
      !record.gone && record.wakeAt !== undefined && record.wakeAt <= now
        ? [{ ref: record.ref, wakeAt: record.wakeAt }]
        : [],
    )
    .sort((a, b) => a.wakeAt - b.wakeAt)
    .map(({ ref }) => ({ ref, reason: 'Due' }));

/** Records were read before the Proxies, so a record whose Proxy is not listed had one that is gone. */
const closed = ({ records, proxies, cluster }: Observation): readonly Nudge[] => {
  if (proxies.kind === 'unknown' || (cluster.kind !== 'known' && cluster.kind !== 'first')) return [];
  const uids = new Set(proxies.proxies.map(({ ref }) => ref.uid));
  return records.flatMap(({ record }) =>
    record.gone || uids.has(record.ref.uid) ? [] : [{ ref: record.ref, reason: 'ProxyGone' }],
  );
};

interface Neglected {
  readonly proxy: ProxySummary;
  readonly reason: NudgeReason;
}

const neglected = (
  { installation, proxies, unreadable }: Observation,
  records: ReadonlyMap<string, ObservedRecord>,
): readonly Neglected[] => {
  if (proxies.kind === 'unknown') return [];
  const tombstones = new Set(
    [...records.values()].flatMap(({ record }) => (record.gone ? [record.ref.uid] : [])),
  );
  const recorded = new Set([...records.keys(), ...unreadable]);
  return proxies.proxies.flatMap((proxy): readonly Neglected[] => {
    if (proxy.owner !== undefined && proxy.owner !== installation) return [];
    // One that is on its way out was closed in good order; under any other, a tombstone is out of an old backup.
    const outOfBackup = tombstones.has(proxy.ref.uid) && !proxy.deleting;
    if (outOfBackup || !recorded.has(proxy.ref.uid)) return [{ proxy, reason: 'NoRecord' }];
    return proxy.covered ? [] : [{ proxy, reason: 'NotObserved' }];
  });
};

/** Where another cluster answers than the one that is known, what only the records speak of lives in that one, if at all. */
const isHere = ({ proxies, cluster }: Observation): ((nudge: Nudge) => boolean) => {
  if (cluster.kind !== 'changed') return () => true;
  const uids = new Set(proxies.kind === 'listed' ? proxies.proxies.map(({ ref }) => ref.uid) : []);
  return ({ ref }) => uids.has(ref.uid);
};

/** One nudge per Proxy, its first reason, and no more than the run may send; the rest is found again by the next run. */
const distinct = (nudges: readonly Nudge[], max: number): readonly Nudge[] => {
  const first = new Map<string, Nudge>();
  for (const nudge of nudges) if (!first.has(nudge.ref.uid)) first.set(nudge.ref.uid, nudge);
  return [...first.values()].slice(0, max);
};

/** Whatever a record is under way with goes on in its own trace. */
const traced = (nudge: Nudge, records: ReadonlyMap<string, ObservedRecord>): Nudge => {
  const traceparent = records.get(nudge.ref.uid)?.record.traceparent;
  return traceparent === undefined ? nudge : { ...nudge, traceparent };
};

/** Nudges, and the keys of Proxies that nobody has dealt with: only a second sighting is worth a nudge. */
export const planNudges = (
  observation: Observation,
): {
  readonly nudges: readonly Nudge[];
  readonly sighted: { readonly add: readonly string[]; readonly keep: readonly string[] };
} => {
  const { listings, records, sightings, now, limits } = observation;
  const listed = listings.filter((listing) => listing.kind === 'listed');
  const byUid = new Map(records.map((observed) => [observed.record.ref.uid, observed]));
  const waiting = neglected(observation, byUid);
  const keys = waiting.map(({ proxy }) => proxyKey(proxy));
  const ripe = waiting.filter(
    ({ proxy }) => now - (sightings.get(proxyKey(proxy)) ?? now) >= limits.sightingGapMs,
  );
  return {
    nudges: distinct(
      [
        ...listed.flatMap((listing) => drifted(records, listing)),
        ...shared(records),
        ...closed(observation),
        ...due(observation),
        ...listed.flatMap((listing) => unrecorded(observation, listing, byUid)),
        ...ripe.map(({ proxy, reason }) => ({ ref: proxy.ref, reason })),
      ].filter(isHere(observation)),
      limits.maxNudges,
    ).map((nudge) => traced(nudge, byUid)),
    sighted: { add: keys.filter((key) => !sightings.has(key)), keep: keys },
  };
};
