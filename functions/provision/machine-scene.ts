/** What the checks of a managed Proxy look at: the observation, the record so far, and the machine that is wanted. */

import type { Finding } from '#shared/domain/conditions.ts';
import type { Machine } from '#shared/domain/machine.ts';
import type { MachineIntent, ProxyRecord } from '#shared/domain/record.ts';

import { locate, noted, preferred, type Place } from './machines.ts';
import type { Inputs, Observation, Outcome, ProxyFacts } from './plan.ts';
import { synced, withIntent, withoutIntent } from './publishing.ts';

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

export const sceneOf = (observation: Observation, facts: ProxyFacts, now: number): Scene => {
  const record = noted(synced(observation, facts), observation, now);
  const wanted = wantedIn(record, observation.inputs);
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
): Finding<'Provisioned'> => ({
  status: 'False',
  reason: isReplacing(scene) ? 'Replacing' : reason,
  message,
});

/** Another machine in place of the wanted one, under a new name. The old one is cleared away as any unwanted machine is. */
export const startAfresh = (scene: Wanted, because: string, proven: boolean): Outcome => {
  const { record, wanted, facts, now } = scene;
  const zone = facts.desired.zones.find((each) => (wanted.exhausted?.[each] ?? 0) <= now);
  const { exhausted, failure } = wanted;
  const left = proven ? withoutIntent(record, wanted.name) : record;
  const more = { ...(exhausted ? { exhausted } : {}), ...(failure ? { failure } : {}) };
  return {
    because,
    record: withIntent(left, wanted.hash, zone ?? facts.desired.zones[0] ?? '', now, more),
    next: { again: true },
  };
};
