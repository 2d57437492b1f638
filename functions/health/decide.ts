/** What a round probes, and whether what it saw may be believed. */

import type { HealthCheck, ProxyRef } from '#shared/domain/proxy.ts';
import { publications, type ProxyRecord, type Publication } from '#shared/domain/record.ts';
import { judge, startStreak, type Streak } from '#shared/domain/verdict-rules.ts';
import type { Verdict } from '#shared/domain/verdict.ts';

/** Suspects have a pool of their own, so that dead proxies, which take long, never delay live ones. */
export type PoolName = 'live' | 'suspect';

export interface Task {
  readonly ref: ProxyRef;
  readonly publication: Publication;
  readonly check: HealthCheck;
  readonly pool: PoolName;
  /** What earlier rounds left open about this endpoint. */
  readonly streak: Streak;
}

export interface RoundMoment {
  /** Milliseconds. */
  readonly now: number;
  /** The start of the round before; absent in the first. */
  readonly previousAt?: number;
}

const EVERY_ROUND_SECONDS = 60;
/** A doubt that no round took up for so long says nothing any more. */
const DOUBT_LIFE_MS = 600_000;

/** Spreads proxies over their interval by where in it their uid falls; no round is missed however late a tick comes. */
const slot = (uid: string, intervalMs: number, at: number): number =>
  Math.floor((at - (Number.parseInt(uid.slice(0, 8), 16) % intervalMs)) / intervalMs);

/** An endpoint without a verdict is due in every round, and so is what earlier rounds left in doubt. */
const isDue = (
  { ref, healthCheck }: ProxyRecord,
  { verdict }: Publication,
  { now, previousAt }: RoundMoment,
  doubted: boolean,
): boolean => {
  if (healthCheck.intervalSeconds <= EVERY_ROUND_SECONDS || verdict.state === 'Unknown' || doubted)
    return true;
  if (previousAt === undefined) return true;
  const intervalMs = healthCheck.intervalSeconds * 1000;
  return slot(ref.uid, intervalMs, now) > slot(ref.uid, intervalMs, previousAt);
};

/** Another first one each minute, so that a round that runs out of time does not always leave out the same ones. */
const rotated = <T>(items: readonly T[], now: number): readonly T[] => {
  const first = items.length === 0 ? 0 : (Math.floor(now / 60_000) * 997) % items.length;
  return [...items.slice(first), ...items.slice(0, first)];
};

/** Every publication that is due, whatever part it plays. */
export const planRound = (
  records: readonly ProxyRecord[],
  moment: RoundMoment,
  doubts: readonly Streak[],
): readonly Task[] => {
  const fresh = doubts.filter(({ newest }) => newest && moment.now - newest.at < DOUBT_LIFE_MS);
  const open = new Map(fresh.map((streak) => [streak.endpointId, streak]));
  const tasks = records.flatMap((record) =>
    publications(record)
      .filter((publication) => isDue(record, publication, moment, open.has(publication.endpoint.id)))
      .map((publication): Task => ({
        ref: record.ref,
        publication,
        check: record.healthCheck,
        pool: publication.verdict.state === 'Healthy' ? 'live' : 'suspect',
        streak: open.get(publication.endpoint.id) ?? startStreak(publication.endpoint.id),
      })),
  );
  return rotated(tasks, moment.now);
};

/** What a round found out about one endpoint. */
export interface Finding {
  readonly task: Task;
  readonly streak: Streak;
  /** The verdict that it leads to; the publication's own when nothing changes. */
  readonly verdict: Verdict;
}

export const findingOf = (task: Task, streak: Streak, now: number): Finding => ({
  task,
  streak,
  verdict: judge(task.publication, streak, task.check, now),
});

export const isChange = ({ task, verdict }: Finding): boolean => verdict !== task.publication.verdict;

export const turnsBad = ({ task, verdict }: Finding): boolean =>
  task.publication.verdict.state === 'Healthy' && verdict.state === 'Unhealthy';

export type Conclusion =
  | { readonly kind: 'conclusive' }
  | { readonly kind: 'inconclusive'; readonly why: 'ControlFailed' | 'MassFailure' };

const MASS_MINIMUM = 10;
/** After so many rounds in a row, with the control passing, a mass failure is believed. */
export const MASS_ROUNDS = 5;

/** A blind prober does not condemn. `massFailures` counts the rounds just before that were inconclusive for that reason. */
export const conclude = (
  findings: readonly Finding[],
  controlPassed: boolean,
  massFailures: number,
): Conclusion => {
  if (!controlPassed) return { kind: 'inconclusive', why: 'ControlFailed' };
  const bad = findings.filter(turnsBad).length;
  const isMass = findings.length >= MASS_MINIMUM && bad * 2 > findings.length;
  return isMass && massFailures < MASS_ROUNDS
    ? { kind: 'inconclusive', why: 'MassFailure' }
    : { kind: 'conclusive' };
};

/**
 * Milliseconds between the starts of two probes of a run: twice what one takes of a CPU. And the most that its starts may
 * be spread over: after the last one there is time for three probes of 5 s each.
 */
const STEP_MS = 4;
const SPREAD_MS = 28_000;

/**
 * When the probe at `index` of `count` starts: evenly spread and jittered within its step (`fraction` of it), so that
 * neither a target nor our own sockets meet a whole fleet at once. `shards` run side by side. Milliseconds.
 */
export const startAfter = (index: number, count: number, shards: number, fraction: number): number => {
  const step = Math.min(STEP_MS * shards, SPREAD_MS / count);
  return (index + fraction) * step;
};

/** Wait before the next try at an endpoint that was just published: at once, then at growing distances. Milliseconds. */
export const nextTryAfter = (attempt: number): number => Math.min(500 * 2 ** attempt, 5000);
