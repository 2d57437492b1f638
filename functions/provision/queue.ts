/** At most a share of the fleet is replaced at once: who wants to replace what serves well waits until its turn comes. */

import type { ProxyRecord } from '#shared/domain/record.ts';

import { isReplacing, type Check, type Resolved } from './machine-scene.ts';
import type { Observation, Outcome, Turn } from './plan.ts';
import { withoutPlace } from './publishing.ts';

/** Whoever asked at the same moment has been recorded by then, so that nobody takes a place that is an earlier one's. */
const ANNOUNCED_MS = 1_000;
const LOOK_MIN_MS = 30_000;
const LOOK_MAX_MS = 300_000;
/** The more there are, the more often one of them looks anyway. */
const LOOK_PER_PROXY_MS = 30;

/** How many may be replaced at once: one at the least. */
export const slots = ({ fleet, percent }: Pick<Turn, 'fleet' | 'percent'>): number =>
  Math.max(1, Math.floor((fleet * percent) / 100));

const queued = (turn: Turn): string => {
  const { percent, oldest, stuck } = turn;
  const share = slots(turn) === 1 ? 'one Proxy' : `${percent} % of all Proxies`;
  const which =
    stuck > 0 ? 'one that wants the same machine and does not get healthy is' : 'the first of them is';
  const first = oldest === undefined ? '' : `; ${which} ${oldest}`;
  return `The spec asks for another machine. At most ${share} may be replaced at once, and others came first${first}. The endpoint from before serves on. If this lasts, see what keeps that one from becoming healthy: correct its spec, or change its spec.revision for another try.`;
};

type Place = NonNullable<ProxyRecord['replacement']>;

const announced = (record: ProxyRecord, place: Place): Outcome => ({
  because: 'replacementIsAnnounced',
  record: { ...record, replacement: place },
  next: { pauseMs: ANNOUNCED_MS },
});

const inQueue = ({ record, observation, now }: Resolved, turn: Turn, place: Place): Outcome => {
  const look = Math.min(LOOK_MAX_MS, Math.max(LOOK_MIN_MS, turn.fleet * LOOK_PER_PROXY_MS));
  return {
    because: 'replacementIsQueued',
    record: { ...record, replacement: place },
    provisioned: { status: 'False', reason: 'ReplacementQueued', message: queued(turn) },
    wake: { at: now + Math.round(look * (0.75 + observation.jitter / 4)), reason: 'ReplacementQueued' },
    next: {},
  };
};

/** Its place against those of the others. */
const placed = (scene: Resolved, place: Place, anew: Place): Outcome => {
  const { record, observation } = scene;
  const { turn } = observation;
  if (!turn) return { because: 'queueIsNotSeen', record, next: { pauseMs: ANNOUNCED_MS } };
  if (turn.stuck >= slots(turn)) return inQueue(scene, turn, { ...place, held: true });
  // Nobody has counted it meanwhile: it begins at the end.
  if (place.held) return announced(record, anew);
  if (turn.ahead + turn.stuck >= slots(turn)) return inQueue(scene, turn, place);
  return {
    because: 'itsTurnHasCome',
    record: { ...record, replacement: { ...place, granted: true } },
    next: { again: true },
  };
};

/**
 * A place, once granted, is kept until the new machine is healthy. One that never gets there holds those that want the very
 * same machine, since they would fare no better, and nobody else. What serves nobody well is replaced without waiting.
 */
export const waitsForItsTurn: Check<Resolved> = (scene) => {
  const { record, observation, inputs, now } = scene;
  const { replacement, serving } = record;
  if (!isReplacing(scene) || serving?.verdict.state !== 'Healthy' || replacement?.granted) return undefined;
  const anew: Place = { at: now + observation.jitter, granted: false, hash: inputs.hash };
  if (!replacement) return announced(record, anew);
  if (replacement.hash !== inputs.hash) return announced(record, { ...anew, at: replacement.at });
  return placed(scene, replacement, anew);
};

const IN_QUEUE: ReadonlySet<string> = new Set([
  'replacementIsAnnounced',
  'queueIsNotSeen',
  'replacementIsQueued',
]);

/** A place that was not granted yet is kept only by whom waits for it: nobody stands in the way and does nothing. */
export const withoutIdlePlace = (outcome: Outcome): Outcome => {
  if (!outcome.record?.replacement || outcome.record.replacement.granted || IN_QUEUE.has(outcome.because))
    return outcome;
  return { ...outcome, record: withoutPlace(outcome.record) };
};

/** The old one serves on, or the new one came to serve, since the old one was lost, and does not answer. */
const isStuck = ({ record, blocked }: Outcome, { proxy }: Observation): boolean => {
  if (!record?.serving) return false;
  const cameToServe =
    proxy?.desired.strategy === 'RollingUpdate' && record.serving.verdict.state === 'Unhealthy';
  return blocked === true || cameToServe;
};

/**
 * Marks a place whose machine does not get to serve well, as long as it does not. With Recreate nothing serves meanwhile: such
 * a one stays in everybody's way, so that no more than the share is ever without an endpoint, whatever the cause.
 */
export const withStuckPlace = (outcome: Outcome, observation: Observation): Outcome => {
  const { record, next } = outcome;
  if (!record?.replacement?.granted || next.again || next.retry) return outcome;
  const { stuck: _past, ...place } = record.replacement;
  const { inputs } = observation;
  const hash = inputs?.kind === 'resolved' ? inputs.hash : place.hash;
  if (hash === undefined) return { ...outcome, record: { ...record, replacement: place } };
  const stuck = isStuck(outcome, observation) ? { stuck: true } : {};
  return { ...outcome, record: { ...record, replacement: { ...place, hash, ...stuck } } };
};
