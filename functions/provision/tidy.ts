/** Clearing away what is no longer wanted: endpoints that have drained, machines without one, credentials of neither. */

import type { Machine } from '#shared/domain/machine.ts';
import { publications, type MachineIntent, type ProxyRecord } from '#shared/domain/record.ts';

import { createOperation, locate, preferred, type Place } from './machines.ts';
import type { Next, Observation, PendingOperation, Step } from './plan.ts';

/** Between two looks at a machine that is on its way out, and the least time between two proofs of absence. */
export const WATCH_MS = 3_000;
/** A delete call that left its machine running for so long is sent again. */
export const RESEND_MS = 120_000;
/** The end of a drain that is so near is waited for in the call. */
const NEAR_MS = 15_000;
/** After a refused delete call, this long until the next. */
const REFUSED_MS = 300_000;
/** Leases may be given back early: a drain is looked at this often. */
const DRAIN_LOOK_MS = 60_000;

export interface Tidied {
  readonly record: ProxyRecord;
  /** To be done once the record is written. */
  readonly steps: readonly Step[];
  readonly next: Next;
  readonly wake?: { readonly at: number; readonly reason: string };
  /** Names of machines that are still on their way out. */
  readonly leaving: readonly string[];
}

const withoutDrained = (record: ProxyRecord, { leases }: Observation, now: number): ProxyRecord => ({
  ...record,
  draining: record.draining.filter(({ endpoint, until }) => now < until && leases[endpoint.id]),
});

const drainWait = (
  record: ProxyRecord,
  { leases }: Observation,
  now: number,
): Pick<Tidied, 'next' | 'wake'> => {
  if (record.draining.length === 0) return { next: {} };
  const ends = record.draining.map(({ endpoint, until }) =>
    Math.min(until, (leases[endpoint.id]?.lastExpiry ?? until) + 1000),
  );
  const soonest = Math.min(...ends);
  return soonest - now <= NEAR_MS
    ? { next: { pauseMs: Math.max(500, soonest - now) } }
    : { next: {}, wake: { at: Math.min(soonest, now + DRAIN_LOOK_MS), reason: 'Draining' } };
};

/** Deleted is deleted: a machine that is stopping, or whose delete call was accepted, is only watched. */
const isLeaving = (
  machine: Machine,
  intent: MachineIntent,
  { deletesSent }: Observation,
  now: number,
): boolean => {
  const recorded = machine.instanceId === intent.instanceId ? intent.deleteRequestedAt : undefined;
  const sentAt = Math.max(recorded ?? 0, deletesSent[machine.instanceId] ?? 0);
  return machine.state === 'stopping' || now - sentAt < RESEND_MS;
};

const deletions = (
  observation: Observation,
  intent: MachineIntent,
  mine: readonly Machine[],
  now: number,
): readonly Step[] =>
  mine
    .filter((machine) => !isLeaving(machine, intent, observation, now))
    .map((machine) => ({ kind: 'deleteMachine', machine }));

/** What a machine of ours left behind goes too; what was told to go is only watched. */
const leftoverDeletions = (
  { deletesSent }: Observation,
  { leftovers }: Place,
  now: number,
): readonly Step[] =>
  leftovers
    .filter(({ id }) => now - (deletesSent[id] ?? 0) >= RESEND_MS)
    .map((leftover) => ({ kind: 'deleteLeftover', leftover }));

const deletesOf = (observation: Observation, name: string): readonly PendingOperation[] =>
  observation.pending.filter(({ kind, machine }) => kind === 'delete' && machine === name);

const isEnd = ({ again, operations, pauseMs }: Next): boolean =>
  !again && operations === undefined && pauseMs === undefined;

interface Cleared {
  readonly name: string;
  readonly gone: boolean;
  readonly steps: readonly Step[];
  readonly next: Next;
}

/** What one unwanted machine needs next. */
const clear = (observation: Observation, intent: MachineIntent, now: number): Cleared => {
  const { name } = intent;
  const place = locate(observation, intent, now);
  if (place.gone) return { name, gone: true, steps: [], next: {} };
  const refused = observation.refusals.some(({ kind, machine }) => kind === 'delete' && machine === name);
  // What the provider refused a moment ago is asked for again after the next wake-up, not at once.
  if (refused) return { name, gone: false, steps: [], next: {} };
  const steps = [
    ...deletions(observation, intent, place.mine, now),
    ...leftoverDeletions(observation, place, now),
  ];
  if (steps.length > 0) return { name, gone: false, steps, next: { again: true } };
  const creating = place.mine.length === 0 ? createOperation(observation, intent) : undefined;
  const operations = [...deletesOf(observation, name), ...(creating ? [creating] : [])];
  const next = operations.length > 0 ? { operations } : { pauseMs: WATCH_MS };
  return { name, gone: false, steps: [], next };
};

/** Where a late success made two machines of one name in two zones, all but the preferred one go. */
const twins = (observation: Observation, intent: MachineIntent, now: number): readonly Step[] => {
  const { mine } = locate(observation, intent, now);
  const kept = preferred(intent, mine);
  return deletions(
    observation,
    intent,
    mine.filter((machine) => machine !== kept),
    now,
  );
};

const shorter = (a: number | undefined, b: number | undefined): { pauseMs?: number } => {
  const all = [a, b].filter((ms) => ms !== undefined);
  return all.length > 0 ? { pauseMs: Math.min(...all) } : {};
};

/** Both: whatever comes first leads to the next look. */
export const bothNext = (a: Next, b: Next): Next => ({
  ...(a.again || b.again ? { again: true } : {}),
  ...(a.retry || b.retry ? { retry: true } : {}),
  operations: [...(a.operations ?? []), ...(b.operations ?? [])],
  ...shorter(a.pauseMs, b.pauseMs),
});

/** Credentials whose endpoint is not published any more. */
const staleCredentials = (record: ProxyRecord): readonly string[] => {
  const live = new Set(publications(record).map(({ endpoint }) => endpoint.id));
  return (record.credentials ?? []).filter((id) => !live.has(id));
};

const dropCredentials = (record: ProxyRecord, stale: readonly string[]): ProxyRecord =>
  stale.length === 0
    ? record
    : { ...record, credentials: (record.credentials ?? []).filter((id) => !stale.includes(id)) };

/** Drops what has drained, deletes machines that are neither wanted (`isWanted`) nor published, forgets those proven gone. */
export const tidy = (
  start: ProxyRecord,
  observation: Observation,
  now: number,
  isWanted: (intent: MachineIntent) => boolean,
): Tidied => {
  const drained = withoutDrained(start, observation, now);
  const waiting = drainWait(drained, observation, now);
  const published = new Set(publications(drained).map(({ machine }) => machine));
  const seen = observation.fleet.kind === 'seen';
  const kept = drained.machines.filter((intent) => published.has(intent.name) || isWanted(intent));
  const unwanted = seen ? drained.machines.filter((intent) => !kept.includes(intent)) : [];
  const cleared = unwanted.map((intent) => clear(observation, intent, now));
  const gone = new Set(cleared.filter((each) => each.gone).map(({ name }) => name));
  const machines = drained.machines.filter(({ name }) => !gone.has(name));
  const stale = staleCredentials(drained);
  const forget: readonly Step[] = stale.length > 0 ? [{ kind: 'removeCredentials', endpointIds: stale }] : [];
  const isRefused = cleared.some((each) => !each.gone && isEnd(each.next));
  const extra = seen ? kept.flatMap((intent) => twins(observation, intent, now)) : [];
  return {
    ...waiting,
    ...(isRefused && !waiting.wake ? { wake: { at: now + REFUSED_MS, reason: 'Deleting' } } : {}),
    record: dropCredentials({ ...drained, machines }, stale),
    steps: [...forget, ...extra, ...cleared.flatMap(({ steps }) => steps)],
    next: cleared.reduce((next, each) => bothNext(next, each.next), waiting.next),
    leaving: cleared.filter((each) => !each.gone).map(({ name }) => name),
  };
};
