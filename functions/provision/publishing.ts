/** What happens to a record: every change of an endpoint, as a function from record to record. */

import { unknownVerdict } from '#shared/domain/verdict.ts';
import type { Endpoint } from '#shared/domain/endpoint.ts';
import { machineName } from '#shared/domain/names.ts';
import {
  publications,
  type DrainingPublication,
  type MachineIntent,
  type ProxyRecord,
  type Publication,
} from '#shared/domain/record.ts';

import type { Observation, ProxyFacts } from './plan.ts';

/** The stored record (or a first one) with the fields that repeat the spec brought up to date. */
export const synced = (observation: Observation, facts: ProxyFacts): ProxyRecord => {
  const { record, ref, installation } = observation;
  const { desired } = facts;
  return {
    draining: [],
    machines: [],
    incarnation: 0,
    ...record,
    // Its Proxy is here: a tombstone under it is out of an old backup.
    gone: false,
    ref,
    installation,
    provider: desired.provider,
    generation: facts.generation,
    labels: desired.labels,
    maxLeases: desired.maxLeases,
    cordoned: desired.cordoned,
    deleting: facts.deleting,
    drainTimeoutSeconds: desired.drainTimeoutSeconds,
    healthCheck: desired.healthCheck,
  };
};

export const withoutServing = (record: ProxyRecord): ProxyRecord => {
  const { serving: _withdrawn, ...rest } = record;
  return rest;
};

export const withoutCandidate = (record: ProxyRecord): ProxyRecord => {
  const { candidate: _dropped, ...rest } = record;
  return rest;
};

export const withoutPlace = (record: ProxyRecord): ProxyRecord => {
  const { replacement: _left, ...rest } = record;
  return rest;
};

export const withServing = (record: ProxyRecord, serving: Publication): ProxyRecord => ({
  ...record,
  serving,
});

/** A publication of something new: nothing is known of it yet. */
export const publicationOf = (
  endpoint: Endpoint,
  now: number,
  machine?: Pick<Publication, 'machine' | 'zone' | 'providerID' | 'ownExit'>,
): Publication => ({ endpoint, verdict: unknownVerdict(now), publishedAt: now, ...machine });

/** Serving takes no new lease from now on and goes when its leases have ended. */
export const drainServing = (record: ProxyRecord, now: number): ProxyRecord => {
  if (!record.serving) return record;
  const leaving: DrainingPublication = {
    ...record.serving,
    until: now + record.drainTimeoutSeconds * 1000,
  };
  return { ...withoutServing(record), draining: [...record.draining, leaving] };
};

/** The candidate serves; what served before drains. One write, so that there is always at most one to lease. */
export const promoteCandidate = (record: ProxyRecord, now: number): ProxyRecord =>
  record.candidate ? withServing(withoutCandidate(drainServing(record, now)), record.candidate) : record;

/** Nothing is published, nothing will be; remembered until every view is newer. */
export const tombstone = (record: ProxyRecord): ProxyRecord => {
  const {
    serving: _serving,
    candidate: _candidate,
    credentials: _credentials,
    replacement: _replacement,
    wakeAt: _wakeAt,
    wakeReason: _wakeReason,
    ...rest
  } = record;
  return { ...rest, draining: [], gone: true };
};

/**
 * True when the machine behind a publication is seen to answer no longer at its address: it is not running, not there, or
 * elsewhere. A place that cannot be seen and a state that nobody knows prove nothing.
 */
const isDead = (observation: Observation, record: ProxyRecord, publication: Publication): boolean => {
  if (publication.machine === undefined || observation.fleet.kind !== 'seen') return false;
  const intent = record.machines.find(({ name }) => name === publication.machine);
  if (!intent) return true;
  const sightings = observation.fleet.machines[intent.name] ?? [];
  const machine = sightings
    .flatMap((sighting) => (sighting.kind === 'machine' ? [sighting.machine] : []))
    .find(({ instanceId }) => instanceId === publication.endpoint.instanceId);
  if (!machine) return sightings.every(({ kind }) => kind !== 'unseen');
  if (machine.state === 'unknown') return false;
  return machine.state !== 'running' || machine.address !== publication.endpoint.host;
};

/** The very record when there are none to leave out. */
export const withoutPublications = (record: ProxyRecord, some: readonly Publication[]): ProxyRecord => {
  if (some.length === 0) return record;
  const { serving, candidate, draining, ...rest } = record;
  return {
    ...rest,
    ...(serving && !some.includes(serving) ? { serving } : {}),
    ...(candidate && !some.includes(candidate) ? { candidate } : {}),
    draining: draining.filter((each) => !some.includes(each)),
  };
};

/** The record without the endpoints whose machine is seen not to answer there any more. */
export const withoutDead = (record: ProxyRecord, observation: Observation): ProxyRecord =>
  withoutPublications(
    record,
    publications(record).filter((each) => isDead(observation, record, each)),
  );

/** A new machine is intended, under a name that none before it had; nothing has been asked for yet. */
export const withIntent = (
  record: ProxyRecord,
  hash: string,
  zone: string,
  now: number,
  more: Pick<MachineIntent, 'exhausted' | 'failure' | 'insteadOf'> = {},
): ProxyRecord => {
  const incarnation = record.incarnation + 1;
  const name = machineName(record.installation, record.ref.uid, hash, incarnation);
  return {
    ...record,
    incarnation,
    machines: [...record.machines, { name, hash, incarnation, zones: [zone], askedAt: now, ...more }],
  };
};

export const withoutIntent = (record: ProxyRecord, name: string): ProxyRecord => ({
  ...record,
  machines: record.machines.filter((intent) => intent.name !== name),
});

export const changeIntent = (
  record: ProxyRecord,
  name: string,
  change: (intent: MachineIntent) => MachineIntent,
): ProxyRecord => ({
  ...record,
  machines: record.machines.map((intent) => (intent.name === name ? change(intent) : intent)),
});
