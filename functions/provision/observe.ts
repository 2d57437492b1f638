/** All reads of a pass, into plain data. What is absent is undefined; an outage throws and is never taken for absence. */

import type { Clock } from '#shared/app/clock.ts';
import type { Ids } from '#shared/app/ids.ts';
import { CONDITION_REASONS, type Condition, type ConditionType } from '#shared/domain/conditions.ts';
import { SystemError } from '#shared/app/errors.ts';
import type { FleetListing, MachineProvider } from '#shared/domain/machine.ts';
import { labelsHash } from '#shared/domain/observed.ts';
import { placesOf, type ProxyRecord } from '#shared/domain/record.ts';
import { FINALIZER, type ProviderName, type ProxyRef } from '#shared/domain/proxy.ts';
import type { CredentialStore } from '#shared/firestore/credentials.ts';
import type { LeaseCounts } from '#shared/firestore/lease-counts.ts';
import type { RecordStore, StoredRecord } from '#shared/firestore/records.ts';
import type { Queue, Waiting } from '#shared/firestore/replacements.ts';
import type { Cluster, ProxyObject } from '#shared/kubernetes/cluster.ts';

import { desiredOf } from './desire.ts';
import { readMachines } from './fleet.ts';
import type { Memory } from './memory.ts';
import type { Fleet, Observation, ProxyFacts, Status } from './plan.ts';
import { resolveInputs, type Material } from './secrets.ts';

export interface Sources {
  readonly cluster: Pick<Cluster, 'getProxy' | 'readSecret' | 'clusterId'>;
  readonly records: Pick<RecordStore, 'read' | 'at' | 'hasLeases'>;
  readonly credentials: Pick<CredentialStore, 'idsOf'>;
  readonly leaseCounts: (uid: string) => Promise<LeaseCounts>;
  readonly queue: (installation: string, waiting: Waiting) => Promise<Queue>;
  /** The cluster whose Proxies this installation looks after; undefined before gc has met it. */
  readonly rememberedCluster: (installation: string) => Promise<string | undefined>;
  readonly maxReplacingPercent: number;
  readonly providers: Readonly<Partial<Record<ProviderName, MachineProvider>>>;
  readonly installation: string;
  readonly allowPrivateEndpoints: boolean;
  readonly clock: Clock;
  readonly ids: Ids;
}

/** What a pass has in hand beside the observation: objects with versions, and what Secrets hold. */
export interface Sight {
  readonly observation: Observation;
  /** Firestore's time where a record was read, since drains and leases are judged by it. Milliseconds. */
  readonly now: number;
  readonly proxy?: ProxyObject;
  readonly stored?: StoredRecord;
  readonly provider?: MachineProvider;
  readonly material: Material;
}

const isConditionType = (type: string): type is ConditionType => Object.hasOwn(CONDITION_REASONS, type);

const statusOf = ({ status = {} }: ProxyObject): Status => {
  const { conditions = [], ...rest } = status;
  const known = conditions.flatMap(({ type, observedGeneration = 0, ...condition }): readonly Condition[] =>
    isConditionType(type) ? [{ type, observedGeneration, ...condition }] : [],
  );
  return { ...rest, ...(known.length > 0 ? { conditions: known } : {}) };
};

const factsOf = (proxy: ProxyObject): ProxyFacts => ({
  generation: proxy.metadata.generation,
  labelsHash: labelsHash(proxy.metadata.labels),
  deleting: proxy.metadata.deletionTimestamp !== undefined,
  hasFinalizer: proxy.metadata.finalizers?.includes(FINALIZER) ?? false,
  status: statusOf(proxy),
  desired: desiredOf(proxy),
});

const NO_MACHINES: Fleet = { kind: 'seen', machines: {} };

/** The object itself, first: what is not there, or is on its way out, needs no Secret. */
interface Subject {
  readonly proxy?: ProxyObject;
  readonly facts?: ProxyFacts;
  readonly stored?: StoredRecord;
  readonly provider?: MachineProvider;
}

const subjectOf = async ({ cluster, records, providers }: Sources, ref: ProxyRef): Promise<Subject> => {
  const [found, stored] = await Promise.all([cluster.getProxy(ref), records.read(ref.uid)]);
  const subject = stored ? { stored } : {};
  if (found?.metadata.uid !== ref.uid) return subject;
  const facts = factsOf(found);
  const provider = providers[facts.desired.provider];
  return { ...subject, proxy: found, facts, ...(provider ? { provider } : {}) };
};

const readFleet = async (
  { facts, stored, provider }: Subject,
  memory: Memory,
  clock: Clock,
): Promise<Fleet> => {
  if (!facts?.desired.machine) return NO_MACHINES;
  if (!provider) return { kind: 'notConfigured' };
  return readMachines(provider, stored?.record.machines ?? [], memory, clock);
};

const readInputs = async ({ proxy, facts }: Subject, cluster: Sources['cluster']) =>
  proxy && facts && !facts.deleting ? resolveInputs(proxy, facts.desired, cluster) : undefined;

const readDrains = async ({ stored }: Subject, { leaseCounts }: Sources): Promise<LeaseCounts> =>
  stored && stored.record.draining.length > 0 ? leaseCounts(stored.record.ref.uid) : {};

/** Where this Proxy stands among those that want another machine; nobody asks who does not wait. */
const readTurn = async ({ stored }: Subject, sources: Sources): Promise<Pick<Observation, 'turn'>> => {
  const { replacement } = stored?.record ?? {};
  if (!replacement || replacement.granted) return {};
  const queue = await sources.queue(sources.installation, replacement);
  return { turn: { ...queue, percent: sources.maxReplacingPercent } };
};

/** Nobody asks who has nothing published by a machine. */
const readRivals = async (
  { stored }: Subject,
  { records, installation }: Sources,
): Promise<Pick<Observation, 'rivals'>> => {
  if (!stored) return {};
  const { record } = stored;
  const hosts = new Set([
    ...placesOf(record).map(({ host }) => host),
    ...record.machines.flatMap(({ yielded }) => (yielded ? [yielded.host] : [])),
  ]);
  if (record.gone || hosts.size === 0) return {};
  const found = await records.at(installation, [...hosts]);
  return {
    rivals: found.records.flatMap((other) =>
      other.record.ref.uid === record.ref.uid ? [] : placesOf(other.record),
    ),
  };
};

/** Dealt with before, says its status, and yet nothing is recorded; or gone, and nothing tells what it had. */
const isLost = ({ facts, stored }: Subject): boolean =>
  !stored && (!facts || facts.status.observed !== undefined);

type Forgotten = NonNullable<Observation['forgotten']>;

const unrecorded = (forgotten: Forgotten, record: ProxyRecord | undefined): Forgotten => ({
  machines: forgotten.machines.filter(
    ({ name, zone }) =>
      !record?.machines.some((intent) => intent.name === name && intent.zones.includes(zone)),
  ),
  credentials: forgotten.credentials.filter((id) => !record?.credentials?.includes(id)),
  leases: forgotten.leases && !record,
});

/** Another cluster knows nothing of our Proxies: nobody asks as long as a Proxy is there, or its end was recorded. */
const readElsewhere = async (
  { facts, stored }: Subject,
  { cluster, rememberedCluster, installation }: Sources,
): Promise<Pick<Observation, 'elsewhere'>> => {
  if (facts || stored?.record.gone) return {};
  const [id, remembered] = await Promise.all([cluster.clusterId(), rememberedCluster(installation)]);
  return remembered === undefined || remembered === id ? {} : { elsewhere: { id, remembered } };
};

/** Without a record the list alone tells what a Proxy on its way out has: what it does not show may be there. */
const refuseDoubt = ({ facts, stored, provider }: Subject, ref: ProxyRef, fleet: FleetListing): void => {
  if (!facts?.deleting || !facts.hasFinalizer || stored) return;
  const unseen = fleet.unknownZones.filter(
    (zone) => provider?.name !== 'kubernetes' || zone === ref.namespace,
  );
  if (!fleet.partial && unseen.length === 0) return;
  const where = unseen.length > 0 ? ` in ${unseen.join(', ')}` : '';
  throw new SystemError('Transient', `Machines${where} could not be listed, and no record names them.`);
};

/** One look in a call: what it finds is recorded, or is not worth another one. */
const readForgotten = async (
  subject: Subject,
  ref: ProxyRef,
  { credentials, records }: Sources,
  memory: Memory,
): Promise<Pick<Observation, 'forgotten'>> => {
  if (!memory.forgotten && (memory.recall || isLost(subject))) {
    const { facts, provider } = subject;
    const [fleet, ids, leases] = await Promise.all([
      facts?.desired.machine ? provider?.list(ref.uid) : undefined,
      credentials.idsOf(ref.uid),
      records.hasLeases(ref.uid),
    ]);
    if (fleet) refuseDoubt(subject, ref, fleet);
    memory.forgotten = { machines: fleet?.machines ?? [], credentials: ids, leases };
  }
  if (!memory.forgotten) return {};
  // What is recorded once is not recalled again when it goes.
  memory.forgotten = unrecorded(memory.forgotten, subject.stored?.record);
  return { forgotten: memory.forgotten };
};

const remembered = (memory: Memory): Pick<Observation, 'pending' | 'ended' | 'refusals' | 'deletesSent'> => ({
  pending: [...memory.pending.values()],
  ended: [...memory.ended],
  refusals: memory.refusals,
  deletesSent: Object.fromEntries([...memory.deletesSent].map(([id, { at }]) => [id, at])),
});

/** Everything that one decision rests on. Throws when a system is away. */
export const observe = async (sources: Sources, ref: ProxyRef, memory: Memory): Promise<Sight> => {
  const { installation, allowPrivateEndpoints, clock, ids } = sources;
  const subject = await subjectOf(sources, ref);
  const { facts, ...inHand } = subject;
  const [resolved, fleet, leases, turn, rivals, forgotten, elsewhere] = await Promise.all([
    readInputs(subject, sources.cluster),
    readFleet(subject, memory, clock),
    readDrains(subject, sources),
    readTurn(subject, sources),
    readRivals(subject, sources),
    readForgotten(subject, ref, sources, memory),
    readElsewhere(subject, sources),
  ]);
  const observation: Observation = {
    ref,
    installation,
    allowPrivateEndpoints,
    ...(facts ? { proxy: facts } : {}),
    ...(subject.stored ? { record: subject.stored.record } : {}),
    ...(resolved ? { inputs: resolved.inputs } : {}),
    fleet,
    ...remembered(memory),
    leases,
    ...turn,
    ...rivals,
    ...forgotten,
    ...elsewhere,
    freshId: ids.token(),
    jitter: ids.fraction(),
  };
  const now = subject.stored?.readTime ?? clock.now();
  return { ...inHand, observation, now, material: resolved?.material ?? {} };
};
