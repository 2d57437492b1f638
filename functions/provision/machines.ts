/** Reading the fleet: which machine is ours, which is gone, and what to remember of it in its intent. */

import type { Leftover, Machine } from '#shared/domain/machine.ts';
import type { MachineFailure, MachineIntent, ProxyRecord } from '#shared/domain/record.ts';

import type { Observation, PendingOperation, Refusal, Sighting } from './plan.ts';

/** A zone without capacity is left alone for this long, and up to as long again. */
const EXHAUSTED_MS = 180_000;
/** A create call whose answer was lost may still succeed for this long. */
const LATE_SUCCESS_MS = 60_000;

/** Base and cap of the wait after a refusal, by what the provider said. Milliseconds. */
const RETRY_MS: Readonly<Record<MachineFailure['behaviour'], readonly [number, number]>> = {
  CapacityUnavailable: [0, 0],
  Conflict: [0, 0],
  QuotaExceeded: [30_000, 600_000],
  Transient: [10_000, 300_000],
  Unauthorised: [300_000, 600_000],
  InvalidSpec: [600_000, 600_000],
};

/** Ours by the provider's unique id when we have seen it (whatever became of its labels), else by its labels. */
export const isOurs = (machine: Machine, intent: MachineIntent, observation: Observation): boolean =>
  machine.instanceId === intent.instanceId ||
  (machine.installation === observation.installation && machine.uid === observation.ref.uid);

export interface Place {
  readonly mine: readonly Machine[];
  /** Machines of that name which are somebody else's. */
  readonly foreign: readonly Machine[];
  readonly inFlight: boolean;
  /** No machine of ours is there, proven in every zone that was tried. */
  readonly absent: boolean;
  /** What it left behind, once it is absent, and proven ours by the labels of its create call. */
  readonly leftovers: readonly Leftover[];
  /** Absent, and nothing is left of it. */
  readonly gone: boolean;
}

const leftoversIn = (
  sightings: readonly Sighting[],
  { installation, ref }: Observation,
): readonly Leftover[] =>
  sightings.flatMap((sighting) =>
    sighting.kind === 'leftover' &&
    sighting.leftover.installation === installation &&
    sighting.leftover.uid === ref.uid
      ? [sighting.leftover]
      : [],
  );

/** Where the machine of an intent is, as far as it can be said. */
export const locate = (observation: Observation, intent: MachineIntent, now: number): Place => {
  const sightings = observation.fleet.kind === 'seen' ? (observation.fleet.machines[intent.name] ?? []) : [];
  const machines = sightings.flatMap((sighting) => (sighting.kind === 'machine' ? [sighting.machine] : []));
  const mine = machines.filter((machine) => isOurs(machine, intent, observation));
  const foreign = machines.filter((machine) => !mine.includes(machine));
  const mayAppear =
    intent.instanceId === undefined &&
    (intent.failure?.retryAt ?? 0) <= (intent.askedAt ?? 0) &&
    now - (intent.askedAt ?? 0) < LATE_SUCCESS_MS;
  const absentFrom = (zone: string): boolean =>
    sightings.some(
      (sighting) =>
        sighting.zone === zone &&
        (sighting.kind === 'untouched' ||
          ((sighting.kind === 'absentTwice' || sighting.kind === 'leftover') && !mayAppear) ||
          (sighting.kind === 'machine' && foreign.includes(sighting.machine))),
    );
  const absent = intent.operation === undefined && intent.zones.every(absentFrom);
  const leftovers = absent ? leftoversIn(sightings, observation) : [];
  return {
    mine,
    foreign,
    inFlight: sightings.some(({ kind }) => kind === 'inFlight'),
    absent,
    leftovers,
    gone: absent && leftovers.length === 0,
  };
};

/** The machine to keep where a late success made two: the recorded one, else a running one. */
export const preferred = (intent: MachineIntent, mine: readonly Machine[]): Machine | undefined =>
  mine.find(({ instanceId }) => instanceId === intent.instanceId) ??
  mine.find(({ state }) => state === 'running') ??
  mine[0];

/** The create operation that decides whether there will be a machine, recorded or of this call. */
export const createOperation = (
  observation: Observation,
  intent: MachineIntent,
): PendingOperation | undefined =>
  observation.pending.find(({ kind, machine }) => kind === 'create' && machine === intent.name) ??
  (intent.operation
    ? {
        kind: 'create',
        machine: intent.name,
        operation: { zone: intent.operation.zone, name: intent.operation.name },
      }
    : undefined);

const failureOf = (
  refusal: Refusal,
  previous: MachineFailure | undefined,
  { jitter }: Observation,
  now: number,
): MachineFailure => {
  const count = (previous?.count ?? 0) + 1;
  const [base, cap] = RETRY_MS[refusal.behaviour];
  const wait = Math.min(cap, base * 2 ** (count - 1));
  return {
    behaviour: refusal.behaviour,
    code: refusal.code,
    message: refusal.message,
    count,
    retryAt: now + Math.round(wait * (0.75 + jitter / 4)),
    ...(refusal.zones ? { zones: refusal.zones } : {}),
  };
};

const withRefusal = (
  intent: MachineIntent,
  refusal: Refusal | undefined,
  observation: Observation,
  now: number,
): MachineIntent => {
  if (!refusal) return intent;
  // Whatever has the name, the only call that was ever sent for it has made nothing.
  if (refusal.behaviour === 'Conflict')
    return refusal.leftNothing
      ? { ...intent, failure: failureOf(refusal, intent.failure, observation, now) }
      : intent;
  const zones = refusal.leftNothing ? intent.zones.filter((zone) => zone !== refusal.zone) : intent.zones;
  const failed = { ...intent, zones, failure: failureOf(refusal, intent.failure, observation, now) };
  if (refusal.behaviour !== 'CapacityUnavailable') return failed;
  const until = now + Math.round(EXHAUSTED_MS * (1 + observation.jitter));
  return { ...failed, exhausted: { ...intent.exhausted, [refusal.zone]: until } };
};

const withOperation = (intent: MachineIntent, observation: Observation, now: number): MachineIntent => {
  const running = observation.pending.find(
    ({ kind, machine }) => kind === 'create' && machine === intent.name,
  );
  if (running)
    return running.operation.name === intent.operation?.name
      ? intent
      : { ...intent, operation: { ...running.operation, startedAt: now } };
  if (!intent.operation || !observation.ended.includes(intent.operation.name)) return intent;
  const { operation: _ended, ...rest } = intent;
  return rest;
};

const withDeletion = (intent: MachineIntent, observation: Observation): MachineIntent => {
  const sentAt = intent.instanceId === undefined ? undefined : observation.deletesSent[intent.instanceId];
  if (sentAt !== undefined) return { ...intent, deleteRequestedAt: intent.deleteRequestedAt ?? sentAt };
  const refused = observation.refusals.some(
    ({ kind, machine }) => kind === 'delete' && machine === intent.name,
  );
  if (!refused || intent.deleteRequestedAt === undefined) return intent;
  const { deleteRequestedAt: _refused, ...rest } = intent;
  return rest;
};

/** What it gave way to counts as long as it is at that address: should it come back to it, it comes anew. */
const withoutPastYield = (intent: MachineIntent, seen: Machine | undefined): MachineIntent => {
  const { yielded, ...rest } = intent;
  const isThere = seen?.state === 'running' && seen.address === yielded?.host;
  return yielded === undefined || seen === undefined || isThere ? intent : rest;
};

const withSighting = (intent: MachineIntent, observation: Observation, now: number): MachineIntent => {
  const seen = preferred(intent, locate(observation, intent, now).mine);
  const told = withoutPastYield(intent, seen);
  if (!seen || (seen.instanceId === intent.instanceId && !intent.failure)) return told;
  const { failure: _over, ...rest } = told;
  return { ...rest, instanceId: intent.instanceId ?? seen.instanceId };
};

/** The record with everything that this call has learnt about its machines written into their intents. */
export const noted = (record: ProxyRecord, observation: Observation, now: number): ProxyRecord => ({
  ...record,
  machines: record.machines.map((intent) => {
    const refusal = observation.refusals.find(
      ({ kind, machine }) => kind === 'create' && machine === intent.name,
    );
    const told = withRefusal(withOperation(intent, observation, now), refusal, observation, now);
    return withDeletion(withSighting(told, observation, now), observation);
  }),
});

/** The first zone, in order of preference, that has not refused lately; one that the provider itself has named comes before. */
export const openZone = (
  zones: readonly string[],
  intent: Pick<MachineIntent, 'exhausted' | 'failure'>,
  now: number,
): string | undefined => {
  const open = zones.filter((zone) => (intent.exhausted?.[zone] ?? 0) <= now);
  return open.find((zone) => intent.failure?.zones?.includes(zone)) ?? open[0];
};
