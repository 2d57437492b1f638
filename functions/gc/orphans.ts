/** Which machines may go, and what they left behind. The checks stand in one ordered list; the first finding keeps it. */

import { MACHINE_LABELS, machinePrefix, uidBase36 } from '#shared/domain/names.ts';

import {
  foundKey,
  identityOf,
  isMachine,
  type Found,
  type FoundLeftover,
  type FoundMachine,
  type Identity,
  type Observation,
} from './observation.ts';
import { listsOf, zoneKey, type Lists } from './lists.ts';

export const KEEP_RULES = [
  'OtherInstallation',
  'ForeignName',
  'NoUid',
  'ListIncomplete',
  'ZoneUnknown',
  'ProxiesUnknown',
  'ClusterUnknown',
  'ProxyExists',
  'RecordLives',
  'RecordUnreadable',
  'MachineListed',
  'DeleteUnderWay',
  'AgeUnknown',
  'TooYoung',
  'FirstSighting',
  'SeenTooRecently',
] as const;
export type KeepRule = (typeof KEEP_RULES)[number];

/** Rules of what had no Proxy in this run: its sighting stands. */
const SIGHTED: ReadonlySet<KeepRule> = new Set(['FirstSighting', 'SeenTooRecently']);
/** Rules under which nothing is known of its Proxy: what was seen before stays as it is. */
const IN_DOUBT: ReadonlySet<KeepRule> = new Set([
  'ListIncomplete',
  'ZoneUnknown',
  'ProxiesUnknown',
  'ClusterUnknown',
  'DeleteUnderWay',
]);

interface Ruled {
  readonly rule: KeepRule | 'Orphan';
}
export type MachineJudgement = FoundMachine & Ruled;
export type LeftoverJudgement = FoundLeftover & Ruled;
export type Judgement = MachineJudgement | LeftoverJudgement;

/** Lookups that everything is judged against, built once per run. */
interface Owners {
  readonly lists: Lists;
  /** UIDs, each as it stands in a label and as it stands in a name. */
  readonly proxies: ReadonlySet<string>;
  readonly records: ReadonlySet<string>;
  readonly unreadable: ReadonlySet<string>;
  readonly recordedNames: ReadonlySet<string>;
}

const isUid = (uid: string): boolean => {
  try {
    return uidBase36(uid).length > 0;
  } catch {
    return false;
  }
};

const spellings = (uids: readonly string[]): ReadonlySet<string> =>
  new Set(uids.flatMap((uid) => (isUid(uid) ? [uid, uidBase36(uid)] : [uid])));

const ownersOf = (observation: Observation): Owners => {
  const { proxies, records, unreadable } = observation;
  const live = records.filter(({ record }) => !record.gone).map(({ record }) => record);
  return {
    lists: listsOf(observation),
    proxies: spellings(proxies.kind === 'listed' ? proxies.proxies.map(({ ref }) => ref.uid) : []),
    records: spellings(live.map(({ ref }) => ref.uid)),
    unreadable: spellings(unreadable),
    recordedNames: new Set(live.flatMap(({ machines }) => machines.map(({ name }) => name))),
  };
};

type Check = (it: Identity, found: Found, observation: Observation, owners: Owners) => boolean;

/** A label can be edited, so the UID in the name counts as much as the one in the label. */
const belongsTo = (uids: ReadonlySet<string>, { name, uid }: Identity, installation: string): boolean => {
  const [inName = ''] = name.slice(machinePrefix(installation).length).split('-');
  return uids.has(inName) || (uid !== undefined && uids.has(uid));
};

const CHECKS: readonly (readonly [KeepRule, Check])[] = [
  ['OtherInstallation', (it, _, { installation }) => it.installation !== installation],
  ['ForeignName', ({ name }, _, { installation }) => !name.startsWith(machinePrefix(installation))],
  ['NoUid', ({ uid }) => uid === undefined || !isUid(uid)],
  ['ListIncomplete', ({ kind }, { provider }, _, { lists }) => lists.incomplete[kind].has(provider)],
  [
    'ZoneUnknown',
    ({ kind, zone }, { provider }, _, { lists }) => lists.unknownZones[kind].has(zoneKey(provider, zone)),
  ],
  ['ProxiesUnknown', (_, __, { proxies }) => proxies.kind === 'unknown'],
  ['ClusterUnknown', (_, __, { cluster }) => cluster.kind === 'unknown'],
  ['ProxyExists', (it, _, { installation }, { proxies }) => belongsTo(proxies, it, installation)],
  [
    'RecordLives',
    (it, _, { installation }, { records, recordedNames }) =>
      belongsTo(records, it, installation) || recordedNames.has(it.name),
  ],
  ['RecordUnreadable', (it, _, { installation }, { unreadable }) => belongsTo(unreadable, it, installation)],
  [
    'MachineListed',
    ({ name, zone }, found, _, { lists }) =>
      !isMachine(found) && lists.machines.has(`${zoneKey(found.provider, zone)}/${name}`),
  ],
  ['DeleteUnderWay', (_, found) => isMachine(found) && found.machine.state === 'stopping'],
  ['AgeUnknown', ({ createdAt }) => createdAt === undefined],
  ['TooYoung', ({ createdAt }, _, { now, limits }) => now - (createdAt ?? now) < limits.minAgeMs],
  ['FirstSighting', (_, found, { sightings }) => !sightings.has(foundKey(found))],
  [
    'SeenTooRecently',
    (_, found, { sightings, now, limits }) =>
      now - (sightings.get(foundKey(found)) ?? now) < limits.sightingGapMs,
  ],
];

const judge = <F extends Found>(found: F, observation: Observation, owners: Owners): F & Ruled => {
  const identity = identityOf(found);
  const finding = CHECKS.find(([, holds]) => holds(identity, found, observation, owners));
  return { ...found, rule: finding ? finding[0] : 'Orphan' };
};

/** What was judged; `leftovers` is absent when the run did not look at them. */
export interface Judgements {
  readonly machines: readonly MachineJudgement[];
  readonly leftovers?: readonly LeftoverJudgement[];
}

/** Everything that was listed with the first rule that keeps it, or `Orphan`. */
export const judgeAll = (observation: Observation): Judgements => {
  const owners = ownersOf(observation);
  const { listings, leftovers } = observation;
  const machines = listings.flatMap((listing) =>
    listing.kind === 'unknown'
      ? []
      : listing.fleet.machines.map((machine) =>
          judge({ provider: listing.provider, machine }, observation, owners),
        ),
  );
  if (!leftovers) return { machines };
  return {
    machines,
    leftovers: leftovers.flatMap((listing) =>
      listing.kind === 'unknown'
        ? []
        : listing.leftovers.map((leftover) =>
            judge({ provider: listing.provider, leftover }, observation, owners),
          ),
    ),
  };
};

/** Whether it is ours at all: of machines, the fleet that suspicion counts. */
export const isOurs = ({ rule }: Judgement): boolean =>
  rule !== 'OtherInstallation' && rule !== 'ForeignName' && rule !== 'NoUid';

/** Keys of sightings that this run adds, keeps, or knows nothing about. */
export const sightedIn = (
  judgements: readonly Judgement[],
): { readonly add: readonly string[]; readonly keep: readonly string[] } => ({
  add: judgements.filter(({ rule }) => rule === 'FirstSighting').map(foundKey),
  keep: judgements
    .filter(({ rule }) => rule === 'Orphan' || SIGHTED.has(rule) || IN_DOUBT.has(rule))
    .map(foundKey),
});

/** What each rule says to a person who reads a plan. */
export const RULE_TEXT: Readonly<Record<Judgement['rule'], string>> = {
  OtherInstallation: `kept: label ${MACHINE_LABELS.installation} does not name this installation`,
  ForeignName: 'kept: its name does not begin with the name of this installation',
  NoUid: `kept: label ${MACHINE_LABELS.uid} is missing or not a UID`,
  ListIncomplete: 'kept: the list that it is in, or that of machines, is not complete',
  ZoneUnknown: 'kept: its zone could not be seen',
  ProxiesUnknown: 'kept: the Proxies could not be listed',
  ClusterUnknown: 'kept: it is not known which cluster answered',
  ProxyExists: 'kept: its Proxy exists',
  RecordLives: 'kept: a record that is not yet closed names it',
  RecordUnreadable: 'kept: the record of its Proxy cannot be read',
  MachineListed: 'kept: a machine of its name is there',
  DeleteUnderWay: 'kept: it is stopping already',
  AgeUnknown: 'kept: its age is not known',
  TooYoung: 'kept: younger than the minimum age',
  FirstSighting: 'kept: seen without a Proxy for the first time',
  SeenTooRecently: 'kept: first seen without a Proxy too short a time ago',
  Orphan: 'to be deleted: its Proxy is gone',
};
