/** Which machines may go. The checks stand in one ordered list; the first finding keeps a machine. */

import { MACHINE_LABELS, machinePrefix, uidBase36 } from '#shared/domain/names.ts';

import { machineKey, type Found, type Observation } from './observation.ts';

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
  'DeleteUnderWay',
  'AgeUnknown',
  'TooYoung',
  'FirstSighting',
  'SeenTooRecently',
] as const;
export type KeepRule = (typeof KEEP_RULES)[number];

/** Rules of machines that had no Proxy in this run: their sightings stand. */
const SIGHTED: ReadonlySet<KeepRule> = new Set(['FirstSighting', 'SeenTooRecently']);
/** Rules under which nothing is known of the machine's Proxy: what was seen before stays as it is. */
const IN_DOUBT: ReadonlySet<KeepRule> = new Set([
  'ListIncomplete',
  'ZoneUnknown',
  'ProxiesUnknown',
  'ClusterUnknown',
  'DeleteUnderWay',
]);

export interface Judgement extends Found {
  readonly rule: KeepRule | 'Orphan';
}

/** Lookups that every machine is judged against, built once per run. */
interface Owners {
  readonly unknownZones: ReadonlySet<string>;
  readonly incomplete: ReadonlySet<string>;
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

const zoneKey = (provider: string, zone: string): string => `${provider}/${zone}`;

const ownersOf = ({ listings, proxies, records, unreadable }: Observation): Owners => {
  const listed = listings.filter((listing) => listing.kind === 'listed');
  const live = records.filter(({ record }) => !record.gone).map(({ record }) => record);
  return {
    unknownZones: new Set(
      listed.flatMap(({ provider, fleet }) => fleet.unknownZones.map((zone) => zoneKey(provider, zone))),
    ),
    incomplete: new Set(listed.filter(({ fleet }) => fleet.partial).map(({ provider }) => provider)),
    proxies: spellings(proxies.kind === 'listed' ? proxies.proxies.map(({ ref }) => ref.uid) : []),
    records: spellings(live.map(({ ref }) => ref.uid)),
    unreadable: spellings(unreadable),
    recordedNames: new Set(live.flatMap(({ machines }) => machines.map(({ name }) => name))),
  };
};

type Check = (found: Found, observation: Observation, owners: Owners) => boolean;

/** A label can be edited, so the UID in the name counts as much as the one in the label. */
const belongsTo = (uids: ReadonlySet<string>, { machine }: Found, installation: string): boolean => {
  const [inName = ''] = machine.name.slice(machinePrefix(installation).length).split('-');
  return uids.has(inName) || (machine.uid !== undefined && uids.has(machine.uid));
};

const age = ({ machine }: Found, now: number): number => now - (machine.createdAt ?? now);

const CHECKS: readonly (readonly [KeepRule, Check])[] = [
  ['OtherInstallation', ({ machine }, { installation }) => machine.installation !== installation],
  ['ForeignName', ({ machine }, { installation }) => !machine.name.startsWith(machinePrefix(installation))],
  ['NoUid', ({ machine }) => machine.uid === undefined || !isUid(machine.uid)],
  ['ListIncomplete', ({ provider }, _, { incomplete }) => incomplete.has(provider)],
  [
    'ZoneUnknown',
    ({ provider, machine }, _, { unknownZones }) => unknownZones.has(zoneKey(provider, machine.zone)),
  ],
  ['ProxiesUnknown', (_, { proxies }) => proxies.kind === 'unknown'],
  ['ClusterUnknown', (_, { cluster }) => cluster.kind === 'unknown'],
  ['ProxyExists', (found, { installation }, { proxies }) => belongsTo(proxies, found, installation)],
  [
    'RecordLives',
    (found, { installation }, { records, recordedNames }) =>
      belongsTo(records, found, installation) || recordedNames.has(found.machine.name),
  ],
  [
    'RecordUnreadable',
    (found, { installation }, { unreadable }) => belongsTo(unreadable, found, installation),
  ],
  ['DeleteUnderWay', ({ machine }) => machine.state === 'stopping'],
  ['AgeUnknown', ({ machine }) => machine.createdAt === undefined],
  ['TooYoung', (found, { now, limits }) => age(found, now) < limits.minAgeMs],
  ['FirstSighting', (found, { sightings }) => !sightings.has(machineKey(found))],
  [
    'SeenTooRecently',
    (found, { sightings, now, limits }) =>
      now - (sightings.get(machineKey(found)) ?? now) < limits.sightingGapMs,
  ],
];

/** Every listed machine with the first rule that keeps it, or `Orphan`. */
export const judgeMachines = (observation: Observation): readonly Judgement[] => {
  const owners = ownersOf(observation);
  return observation.listings.flatMap((listing) =>
    listing.kind === 'unknown'
      ? []
      : listing.fleet.machines.map((machine) => {
          const found: Found = { provider: listing.provider, machine };
          const finding = CHECKS.find(([, holds]) => holds(found, observation, owners));
          return { ...found, rule: finding ? finding[0] : ('Orphan' as const) };
        }),
  );
};

/** Machines of ours among the listed ones: the fleet that suspicion counts. */
export const isOurs = ({ rule }: Judgement): boolean =>
  rule !== 'OtherInstallation' && rule !== 'ForeignName' && rule !== 'NoUid';

/** Keys of sightings that this run adds, keeps, or knows nothing about. */
export const sightedMachines = (
  judgements: readonly Judgement[],
): { readonly add: readonly string[]; readonly keep: readonly string[] } => ({
  add: judgements.filter(({ rule }) => rule === 'FirstSighting').map(machineKey),
  keep: judgements
    .filter(({ rule }) => rule === 'Orphan' || SIGHTED.has(rule) || IN_DOUBT.has(rule))
    .map(machineKey),
});

/** What each rule says to a person who reads a plan. */
export const RULE_TEXT: Readonly<Record<Judgement['rule'], string>> = {
  OtherInstallation: `kept: label ${MACHINE_LABELS.installation} does not name this installation`,
  ForeignName: 'kept: its name does not begin with the name of this installation',
  NoUid: `kept: label ${MACHINE_LABELS.uid} is missing or not a UID`,
  ListIncomplete: 'kept: the list of machines is not complete',
  ZoneUnknown: 'kept: its zone could not be seen',
  ProxiesUnknown: 'kept: the Proxies could not be listed',
  ClusterUnknown: 'kept: it is not known which cluster answered',
  ProxyExists: 'kept: its Proxy exists',
  RecordLives: 'kept: a record that is not yet closed names it',
  RecordUnreadable: 'kept: the record of its Proxy cannot be read',
  DeleteUnderWay: 'kept: it is stopping already',
  AgeUnknown: 'kept: its age is not known',
  TooYoung: 'kept: younger than the minimum age',
  FirstSighting: 'kept: seen without a Proxy for the first time',
  SeenTooRecently: 'kept: first seen without a Proxy too short a time ago',
  Orphan: 'to be deleted: its Proxy is gone',
};
