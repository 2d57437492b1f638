/** At most a share of the fleet is replaced at once: who wants to replace what serves well waits until its turn comes. */

import { isReplacing, type Check, type Resolved } from './machine-scene.ts';
import type { Outcome, Turn } from './plan.ts';
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

const queued = ({ fleet, percent, oldest }: Turn): string => {
  const first = oldest === undefined ? '' : `; the first of them is ${oldest}`;
  const share = slots({ fleet, percent }) === 1 ? 'one Proxy' : `${percent} % of all Proxies`;
  return `The spec asks for another machine. At most ${share} may be replaced at once, and others came first${first}. The endpoint from before serves on. If this lasts, see what keeps that one from becoming healthy.`;
};

/**
 * A place, once granted, is kept until the new machine is healthy: one that never gets there holds up the others instead
 * of letting them follow. What serves nobody well is replaced without waiting.
 */
export const waitsForItsTurn: Check<Resolved> = (scene) => {
  const { record, observation, now } = scene;
  const { replacement } = record;
  if (!isReplacing(scene) || record.serving?.verdict.state !== 'Healthy' || replacement?.granted)
    return undefined;
  if (!replacement)
    return {
      because: 'replacementIsAnnounced',
      record: { ...record, replacement: { at: now + observation.jitter, granted: false } },
      next: { pauseMs: ANNOUNCED_MS },
    };
  const { turn } = observation;
  if (!turn) return { because: 'queueIsNotSeen', record, next: { pauseMs: ANNOUNCED_MS } };
  if (turn.ahead < slots(turn))
    return {
      because: 'itsTurnHasCome',
      record: { ...record, replacement: { ...replacement, granted: true } },
      next: { again: true },
    };
  const look = Math.min(LOOK_MAX_MS, Math.max(LOOK_MIN_MS, turn.fleet * LOOK_PER_PROXY_MS));
  return {
    because: 'replacementIsQueued',
    record,
    provisioned: { status: 'False', reason: 'ReplacementQueued', message: queued(turn) },
    wake: { at: now + Math.round(look * (0.75 + observation.jitter / 4)), reason: 'ReplacementQueued' },
    next: {},
  };
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
