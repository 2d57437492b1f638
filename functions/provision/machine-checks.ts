/** Checks of the machine that is wanted and not there: intended, created, refused, vanished. */

import type { Finding } from '#shared/domain/conditions.ts';
import type { MachineFailure } from '#shared/domain/record.ts';

import {
  isReplacing,
  progress,
  startAfresh,
  type Check,
  type Resolved,
  type Wanted,
} from './machine-scene.ts';
import { createOperation, openZone } from './machines.ts';
import { changeIntent, drainServing, withIntent, withoutPlace } from './publishing.ts';
import { waitsForItsTurn } from './queue.ts';
import { CREATE_REMEDY, sentence } from './remedies.ts';
import { WATCH_MS } from './tidy.ts';

const BLOCKED_MS = 300_000;

const isRecreate = ({ facts }: Resolved): boolean => facts.desired.strategy === 'Recreate';

/** Nothing is asked for, and with Recreate nothing is taken away, before its turn has come. */
export const isToWaitFirst: Check<Resolved> = (scene) =>
  scene.wanted && !isRecreate(scene) ? undefined : waitsForItsTurn(scene);

/** A place that was given up after a refusal is needed again for the next try. */
export const isToWaitAfterAll: Check<Wanted> = (scene) =>
  scene.place.mine.length > 0 ? undefined : waitsForItsTurn(scene);

/** Recreate: what serves drains before anything new is asked for. */
export const oldOneServesStill: Check<Resolved> = (scene) =>
  isRecreate(scene) && isReplacing(scene)
    ? { because: 'oldOneServesStill', record: drainServing(scene.record, scene.now), next: { again: true } }
    : undefined;

/** Recreate: the old machine has to be gone, so that its quota is free. */
export const oldOneIsLeaving: Check<Resolved> = (scene) => {
  const { record, wanted, now } = scene;
  if (!isRecreate(scene) || wanted || record.machines.length === 0) return undefined;
  return {
    because: 'oldOneIsLeaving',
    record,
    provisioned: {
      status: 'False',
      reason: 'Replacing',
      message: 'The old machine drains and is deleted before the new one is made (updateStrategy Recreate).',
    },
    wake: { at: now + BLOCKED_MS, reason: 'Replacing' },
    next: {},
  };
};

/** The intent is recorded, name and zone, before anything is asked for. */
export const nothingIsIntended: Check<Resolved> = ({ record, wanted, inputs, facts, now }) =>
  wanted
    ? undefined
    : {
        because: 'nothingIsIntended',
        record: withIntent(record, inputs.hash, facts.desired.zones[0] ?? '', now),
        next: { again: true },
      };

/** Somebody else's machine has our machine's name. */
export const nameIsTaken: Check<Wanted> = (scene) => {
  const { place, record, now } = scene;
  const [other] = place.foreign;
  if (!other || place.mine.length > 0) return undefined;
  return {
    because: 'nameIsTaken',
    record,
    provisioned: {
      status: 'False',
      reason: 'Conflict',
      message: `A machine named ${other.name} is in ${other.zone || 'the cluster'} and is not ours; it is left alone. Delete it, or change spec.revision for another name.`,
    },
    stalled: true,
    blocked: isReplacing(scene),
    wake: { at: now + BLOCKED_MS, reason: 'Conflict' },
    next: {},
  };
};

export const isBeingCreated: Check<Wanted> = (scene) => {
  const { observation, wanted, place, record } = scene;
  const running = place.mine.length === 0 ? createOperation(observation, wanted) : undefined;
  if (!running) return undefined;
  const where = running.operation.zone ? ` in ${running.operation.zone}` : '';
  return {
    because: 'isBeingCreated',
    record,
    provisioned: progress(scene, 'Creating', `Machine ${wanted.name} is being created${where}.`),
    next: { operations: [running] },
  };
};

/** It was there once. When that is certain, another one is made under another name. */
export const machineVanished: Check<Wanted> = (scene) => {
  const { wanted, place, record } = scene;
  if (place.mine.length > 0 || wanted.instanceId === undefined) return undefined;
  const reason = 'MachineGone';
  const message = `Machine ${wanted.name} was lost: it does not exist any more, and nobody here deleted it.`;
  if (place.absent)
    return startAfresh(scene, { because: 'machineVanished', proven: place.gone, reason, message });
  return {
    because: 'machineVanished',
    record,
    provisioned: progress(scene, 'MachineGone', `Machine ${wanted.name} is not found any more.`),
    next: { pauseMs: WATCH_MS },
  };
};

/** The provider says that the name exists, and shows no such machine: a leftover holds the name. */
export const nameIsBlocked: Check<Wanted> = (scene) => {
  const { observation, wanted, place, record } = scene;
  const refused = observation.refusals.some(
    ({ kind, machine, behaviour }) =>
      kind === 'create' && machine === wanted.name && behaviour === 'Conflict',
  );
  if ((!refused && wanted.failure?.behaviour !== 'Conflict') || place.mine.length > 0) return undefined;
  const reason = 'MachineGone';
  const message = `The name ${wanted.name} is taken by something that another machine left behind, such as a disk.`;
  if (place.absent)
    return startAfresh(scene, { because: 'nameIsBlocked', proven: place.gone, reason, message });
  return {
    because: 'nameIsBlocked',
    record,
    provisioned: progress(
      scene,
      'Creating',
      `Machine ${wanted.name} is said to exist, but is not found yet.`,
    ),
    next: { pauseMs: WATCH_MS },
  };
};

const FAILURE_REASON = {
  QuotaExceeded: 'QuotaExceeded',
  CapacityUnavailable: 'CapacityUnavailable',
  InvalidSpec: 'InvalidSpec',
  Conflict: 'Conflict',
  Transient: 'ProviderError',
  Unauthorised: 'ProviderError',
} as const satisfies Record<MachineFailure['behaviour'], Finding<'Provisioned'>['reason']>;

const refusedFinding = ({ behaviour, code, message }: MachineFailure): Finding<'Provisioned'> => ({
  status: 'False',
  reason: FAILURE_REASON[behaviour],
  message: `${code}: ${sentence(message)} ${CREATE_REMEDY[behaviour]}`,
});

const needsAPerson = ({ behaviour }: MachineFailure): boolean =>
  behaviour === 'InvalidSpec' || behaviour === 'Unauthorised';

/** The provider refused a moment ago. It is asked again later, however long the list of refusals. */
export const refusalIsFresh: Check<Wanted> = (scene) => {
  const { wanted, place, record, now } = scene;
  const { failure } = wanted;
  if (!failure || place.mine.length > 0 || failure.retryAt <= now) return undefined;
  return {
    because: 'refusalIsFresh',
    record: needsAPerson(failure) && isReplacing(scene) ? withoutPlace(record) : record,
    provisioned: refusedFinding(failure),
    stalled: needsAPerson(failure),
    blocked: isReplacing(scene),
    wake: { at: failure.retryAt, reason: FAILURE_REASON[failure.behaviour] },
    next: {},
  };
};

export const zonesAreExhausted: Check<Wanted> = (scene) => {
  const { wanted, place, record, facts, now } = scene;
  const { zones } = facts.desired;
  if (place.mine.length > 0 || openZone(zones, wanted, now) !== undefined) return undefined;
  const soonest = Math.min(...zones.map((zone) => wanted.exhausted?.[zone] ?? now));
  return {
    because: 'zonesAreExhausted',
    record,
    provisioned: {
      status: 'False',
      reason: 'CapacityUnavailable',
      message:
        `No capacity in ${zones.join(', ')}. ${CREATE_REMEDY.CapacityUnavailable} ${wanted.failure?.message ?? ''}`.trim(),
    },
    blocked: isReplacing(scene),
    wake: { at: soonest, reason: 'CapacityUnavailable' },
    next: {},
  };
};

const lossRemedy = ({ desired }: Wanted['facts']): string =>
  desired.machine?.gcp?.provisioningModel === 'Spot'
    ? 'Where this happens too often, set gcp.provisioningModel to Standard, or other zones.'
    : 'Find out who or what takes them away: the audit log of the project, or the Events of the namespace, says.';

/** Machine after machine was lost: the next one waits. */
export const lossesAreMany: Check<Wanted> = (scene) => {
  const { wanted, place, record, facts, now } = scene;
  const { insteadOf } = wanted;
  if (!insteadOf || place.mine.length > 0 || insteadOf.notBefore <= now) return undefined;
  const at = new Date(insteadOf.notBefore).toISOString().replace(/\.\d{3}Z$/, 'Z');
  return {
    because: 'lossesAreMany',
    record,
    provisioned: {
      status: 'False',
      reason: insteadOf.reason,
      message: `${insteadOf.message} It was number ${insteadOf.count} in a row; the next machine is asked for at ${at}. ${lossRemedy(facts)}`,
    },
    blocked: isReplacing(scene),
    wake: { at: insteadOf.notBefore, reason: insteadOf.reason },
    next: {},
  };
};

/** Recorded first, asked for in the next pass: a crash in between costs nothing, and no machine goes unrecorded. */
export const isToBeCreated: Check<Wanted> = ({ wanted, place, record, facts, now }) => {
  if (place.mine.length > 0) return undefined;
  const zone = openZone(facts.desired.zones, wanted, now) ?? '';
  if (!wanted.zones.includes(zone))
    return {
      because: 'zoneIsChosen',
      record: changeIntent(record, wanted.name, (intent) => ({
        ...intent,
        zones: [...intent.zones, zone],
        askedAt: now,
      })),
      next: { again: true },
    };
  return {
    because: 'isToBeCreated',
    record,
    after: [{ kind: 'createMachine', name: wanted.name, hash: wanted.hash, zone }],
    next: { again: true },
  };
};
