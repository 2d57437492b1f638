/** What the checks of a managed Proxy look at: the observation, the record so far, and the machine that is wanted. */

import type { Finding } from '#shared/domain/conditions.ts';
import type { Machine } from '#shared/domain/machine.ts';
import type { Loss, MachineIntent, ProxyRecord } from '#shared/domain/record.ts';

import { locate, noted, openZone, preferred, type Place } from './machines.ts';
import type { Inputs, Observation, Outcome, ProxyFacts } from './plan.ts';
import { synced, withIntent, withoutIntent, withoutPlace } from './publishing.ts';

export interface Scene {
  readonly observation: Observation;
  readonly facts: ProxyFacts;
  /** The record with everything noted that this pass has learnt; checks build on it. */
  readonly record: ProxyRecord;
  readonly now: number;
  /** The intent that fits the spec; absent while there is none, or while the inputs are not known. */
  readonly wanted?: MachineIntent;
}

/** A scene in which the inputs are known. */
export interface Resolved extends Scene {
  readonly inputs: Extract<Inputs, { readonly kind: 'resolved' }>;
}

/** A scene with a wanted intent and where its machine is. */
export interface Wanted extends Resolved {
  readonly wanted: MachineIntent;
  readonly place: Place;
}

/** A scene with a machine of ours. */
export interface Seen extends Wanted {
  readonly machine: Machine;
}

export type Check<S extends Scene> = (scene: S) => Outcome | undefined;

/** First finding wins. */
export const first = <S extends Scene>(checks: readonly Check<S>[], scene: S): Outcome | undefined => {
  for (const check of checks) {
    const outcome = check(scene);
    if (outcome) return outcome;
  }
  return undefined;
};

/** The newest machine of this hash that has not been told to go. */
const wantedIn = (record: ProxyRecord, inputs: Inputs | undefined): MachineIntent | undefined =>
  inputs?.kind === 'resolved'
    ? record.machines.findLast(
        ({ hash, deleteRequestedAt }) => hash === inputs.hash && deleteRequestedAt === undefined,
      )
    : undefined;

export const withRecord = <S extends Scene>(scene: S, record: ProxyRecord): S => ({ ...scene, record });

/** The new machine serves well, or the spec has come back to the one that does: the next may have its turn. */
const withoutUsedPlace = (record: ProxyRecord, wanted: MachineIntent | undefined): ProxyRecord => {
  const { serving } = record;
  const isDone = serving?.machine === wanted?.name && serving?.verdict.state === 'Healthy';
  return record.replacement && isDone ? withoutPlace(record) : record;
};

export const sceneOf = (observation: Observation, facts: ProxyFacts, now: number): Scene => {
  const known = noted(synced(observation, facts), observation, now);
  const wanted = wantedIn(known, observation.inputs);
  const record = withoutUsedPlace(known, wanted);
  return { observation, facts, record, now, ...(wanted ? { wanted } : {}) };
};

export const resolved = (scene: Scene): Resolved | undefined => {
  const { inputs } = scene.observation;
  return inputs?.kind === 'resolved' ? { ...scene, inputs } : undefined;
};

export const wantedScene = (scene: Resolved, wanted: MachineIntent): Wanted => ({
  ...scene,
  wanted,
  place: locate(scene.observation, wanted, scene.now),
});

export const seenScene = (scene: Wanted): Seen | undefined => {
  const machine = preferred(scene.wanted, scene.place.mine);
  return machine && { ...scene, machine };
};

/** True while an endpoint serves whose machine is not the wanted one. */
export const isReplacing = ({ record, wanted }: Scene): boolean =>
  record.serving !== undefined && record.serving.machine !== wanted?.name;

/** A finding of what is under way: during a replacement it is told as one. */
export const progress = (
  scene: Scene,
  reason: 'Creating' | 'WaitingForAddress' | 'Restarting' | 'MachineGone' | 'MachineStopped',
  message: string,
): Finding<'Provisioned'> => {
  const lost = scene.wanted?.insteadOf;
  const told = lost ? `${lost.message} ${message}` : message;
  return {
    status: 'False',
    reason: isReplacing(scene) ? 'Replacing' : (lost?.reason ?? reason),
    message: told,
  };
};

/** Why a machine is given up, and whether it is certain that nothing is left of it. */
export interface Farewell extends Pick<Loss, 'reason' | 'message'> {
  readonly because: string;
  readonly proven: boolean;
}

/** A machine that lasted so long says nothing about the next one. */
const LASTED_MS = 900_000;
const LOSS_BASE_MS = 10_000;
const LOSS_CAP_MS = 600_000;

/** The first loss is made good at once, the next ones ever later: what cannot last is not made over and over. */
const lossOf = ({ wanted, observation, now }: Wanted, { because, reason, message }: Farewell): Loss => {
  const { insteadOf, askedAt = now } = wanted;
  // It never was: nothing has been lost again.
  if (because === 'nameIsBlocked') return { reason, message, count: insteadOf?.count ?? 0, notBefore: now };
  const lasted = now - Math.max(askedAt, insteadOf?.notBefore ?? 0) >= LASTED_MS;
  const count = lasted ? 1 : (insteadOf?.count ?? 0) + 1;
  const wait = count === 1 ? 0 : Math.min(LOSS_CAP_MS, LOSS_BASE_MS * 2 ** (count - 2));
  return { reason, message, count, notBefore: now + Math.round(wait * (0.75 + observation.jitter / 4)) };
};

/** Another machine in place of the wanted one, under a new name. The old one is cleared away as any unwanted machine is. */
export const startAfresh = (scene: Wanted, farewell: Farewell): Outcome => {
  const { because, proven } = farewell;
  const { record, wanted, facts, now } = scene;
  const zone = openZone(facts.desired.zones, wanted, now);
  const { exhausted, failure } = wanted;
  const left = proven ? withoutIntent(record, wanted.name) : record;
  const more = {
    ...(exhausted ? { exhausted } : {}),
    ...(failure && failure.behaviour !== 'Conflict' ? { failure } : {}),
    insteadOf: lossOf(scene, farewell),
  };
  return {
    because,
    record: withIntent(left, wanted.hash, zone ?? facts.desired.zones[0] ?? '', now, more),
    next: { again: true },
  };
};
