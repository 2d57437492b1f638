/**
 * The decision table. `decide` reads an observation and returns a plan; it does nothing itself. Every list below is
 * ordered: the first check that finds something decides the pass. Each check is named for what it finds.
 */

import type { ProxyRecord } from '#shared/domain/record.ts';

import { finalizerWasRemoved, isBeingDeleted, proxyIsGone } from './deletion.ts';
import * as endpoint from './endpoint-checks.ts';
import { isExternal } from './external.ts';
import * as machine from './machine-checks.ts';
import {
  first,
  resolved,
  sceneOf,
  seenScene,
  wantedScene,
  withRecord,
  type Check,
  type Resolved,
  type Scene,
  type Seen,
  type Wanted,
} from './machine-scene.ts';
import type { Next, Observation, Outcome, Plan, ProxyFacts, Step } from './plan.ts';
import { withStuckPlace, withoutIdlePlace } from './queue.ts';
import { addressIsAnothers } from './rivals.ts';
import { somethingIsForgotten } from './recall.ts';
import * as running from './running-checks.ts';
import { eventsOf, statusOf } from './status.ts';
import { bothNext, tidy, type Tidied } from './tidy.ts';

type Rule = (observation: Observation, now: number) => Outcome | undefined;

/** Another installation looks after this Proxy: nothing is written, not even its status. */
const belongsToAnother: Rule = ({ proxy, installation }) =>
  proxy?.status.installation !== undefined && proxy.status.installation !== installation
    ? { because: 'belongsToAnother', next: {} }
    : undefined;

/** Our finalizer comes before anything that would need it, and the pass goes on by itself once it is stored. */
const lacksFinalizer: Rule = ({ proxy }) =>
  proxy?.hasFinalizer === false
    ? { because: 'lacksFinalizer', before: [{ kind: 'addFinalizer' }], next: { again: true } }
    : undefined;

/** What is published, as long as it is known what its machine does. */
const ENDPOINT: readonly Check<Scene>[] = [
  addressIsAnothers,
  endpoint.providerIsNotConfigured,
  endpoint.machineDoesNotAnswerThere,
  endpoint.candidateIsAlone,
  endpoint.providerDoesNotAnswer,
  endpoint.inputsAreUnusable,
  endpoint.candidateIsNotWanted,
  endpoint.candidateIsHealthy,
];

/** Before there is an intent that fits the spec. */
const INTENT: readonly Check<Resolved>[] = [
  machine.isToWaitFirst,
  machine.oldOneServesStill,
  machine.oldOneIsLeaving,
  machine.nothingIsIntended,
];

/** There is an intent, and no machine of ours in sight. */
const MACHINE: readonly Check<Wanted>[] = [
  machine.nameIsTaken,
  machine.isBeingCreated,
  machine.machineVanished,
  machine.nameIsBlocked,
  machine.refusalIsFresh,
  machine.zonesAreExhausted,
  machine.lossesAreMany,
  machine.isToWaitAfterAll,
  machine.isToBeCreated,
];

/** There is a machine of ours. */
const RUNNING: readonly Check<Seen>[] = [
  running.isStopped,
  running.isBroken,
  running.isTerminating,
  running.isChanging,
  running.hasNoAddress,
  running.hasAnothersAddress,
  running.isNotPublished,
  running.candidateIsAwaited,
  running.isServing,
];

const NOTHING: Outcome = { because: 'nothingToDo', next: {} };

const ofMachine = (scene: Resolved): Outcome => {
  const intended = first(INTENT, scene);
  if (intended || !scene.wanted) return intended ?? NOTHING;
  const wanted = wantedScene(scene, scene.wanted);
  const missing = first(MACHINE, wanted);
  if (missing) return missing;
  const seen = seenScene(wanted);
  return (seen && first(RUNNING, seen)) ?? NOTHING;
};

const soonest = (
  a: Outcome['wake'],
  b: Outcome['wake'],
): { readonly wake?: NonNullable<Outcome['wake']> } => {
  const wake = a && b ? (a.at <= b.at ? a : b) : (a ?? b);
  return wake ? { wake } : {};
};

/** Clearing away goes on beside whatever the wanted machine needs, and never waits for it. */
const beside = (tidied: Tidied, outcome: Outcome): Outcome => {
  const leaving = tidied.leaving.length > 0;
  return {
    ...outcome,
    after: [...tidied.steps, ...(outcome.after ?? [])],
    ...soonest(outcome.wake, tidied.wake),
    next: leaving || tidied.next.pauseMs ? bothNext(outcome.next, tidied.next) : outcome.next,
  };
};

const ofManaged = (observation: Observation, proxy: ProxyFacts, now: number): Outcome | undefined => {
  const scene = sceneOf(observation, proxy, now);
  const found = first(ENDPOINT, scene);
  const known = resolved(scene);
  if (found || !known) return found;
  const tidied = tidy(scene.record, observation, now, (intent) => intent.name === scene.wanted?.name);
  return beside(tidied, ofMachine(withRecord(known, tidied.record)));
};

const isManaged: Rule = (observation, now) => {
  const { proxy } = observation;
  const outcome = proxy?.desired.machine && ofManaged(observation, proxy, now);
  return outcome && withStuckPlace(withoutIdlePlace(outcome), observation);
};

/** The life of a Proxy, in the order in which it must be asked. */
const LIFE: readonly Rule[] = [
  proxyIsGone,
  belongsToAnother,
  finalizerWasRemoved,
  somethingIsForgotten,
  isBeingDeleted,
  lacksFinalizer,
  isExternal,
  isManaged,
];

/** Whoever works on a record is expected back by then; after a crash, gc asks somebody else. */
const IN_PROGRESS_MS = 180_000;
/** A refused message comes back by itself; should it not (dead letter), the outage is over for this Proxy so soon after all. */
const OUTAGE_MS = 60_000;

const isOpen = ({ again, retry, operations, pauseMs }: Next): boolean =>
  again === true || retry === true || (operations?.length ?? 0) > 0 || pauseMs !== undefined;

/** `wakeAt` as the outcome wants it; one that is set and near enough stays, so that waiting writes nothing. */
const withWake = (record: ProxyRecord, outcome: Outcome, now: number): ProxyRecord => {
  const { wakeAt, wakeReason, ...rest } = record;
  if (record.gone) return rest;
  const wake =
    outcome.wake ?? (isOpen(outcome.next) ? { at: now + IN_PROGRESS_MS, reason: 'InProgress' } : undefined);
  if (!wake) return rest;
  const at = outcome.next.retry ? Math.min(wake.at, now + OUTAGE_MS) : wake.at;
  const stays = wakeAt !== undefined && wakeReason === wake.reason && wakeAt > now && wakeAt <= at;
  return { ...rest, wakeAt: stays ? wakeAt : Math.max(at, now + 1000), wakeReason: wake.reason };
};

const sorted = (value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(
        Object.entries(value)
          .filter(([, field]) => field !== undefined)
          .toSorted(([a], [b]) => (a < b ? -1 : 1))
          .map(([key, field]) => [key, sorted(field)]),
      )
    : Array.isArray(value)
      ? value.map(sorted)
      : value;

const equal = (a: unknown, b: unknown): boolean => JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));

const recordSteps = (observation: Observation, outcome: Outcome, now: number): readonly Step[] => {
  if (!outcome.record) return [];
  const record = withWake(outcome.record, outcome, now);
  return equal(record, observation.record) ? [] : [{ kind: 'writeRecord', record }];
};

/** The status is written when a pass comes to rest: before a wait, or at the end. */
const statusPlan = (
  observation: Observation,
  outcome: Outcome,
  now: number,
): Pick<Plan, 'status' | 'events'> => {
  const { proxy } = observation;
  const { record, provisioned } = outcome;
  if (!proxy || !record || !provisioned || outcome.next.again) return { events: [] };
  const status = statusOf(observation, proxy, record, { ...outcome, provisioned }, now);
  return equal(status, proxy.status) ? { events: [] } : { status, events: eventsOf(proxy.status, status) };
};

/** Total: every observation leads to steps, a wait, a condition, or to nothing that needs doing. `now` in milliseconds. */
export const decide = (observation: Observation, now: number): Plan => {
  let outcome: Outcome | undefined;
  for (const rule of LIFE) {
    outcome = rule(observation, now);
    if (outcome) break;
  }
  const { because, before = [], after = [], next } = outcome ?? NOTHING;
  return {
    because,
    steps: [...before, ...recordSteps(observation, outcome ?? NOTHING, now), ...after],
    ...statusPlan(observation, outcome ?? NOTHING, now),
    next,
  };
};
