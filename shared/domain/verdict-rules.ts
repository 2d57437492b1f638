/** Verdicts as a pure function of a verdict, the probes since, and the thresholds. */

import type { HealthCheck } from './proxy.ts';
import type { ProxyRecord, Publication } from './record.ts';
import type { ProbeOutcome, Verdict } from './verdict.ts';

/** One probe of one endpoint. `at` is when it began, in milliseconds. */
export interface ProbeResult {
  readonly endpointId: string;
  readonly at: number;
  readonly outcome: ProbeOutcome;
  readonly exitAddress?: string;
}

/** Results of one endpoint in a row: one of the two counts is always 0. */
export interface Streak {
  readonly endpointId: string;
  readonly successes: number;
  readonly failures: number;
  /** The newest result that counted. */
  readonly newest?: ProbeResult;
}

/** An endpoint that was never healthy is not called unhealthy while its machine may still be starting. */
export const START_GRACE_MS = 120_000;

export const startStreak = (endpointId: string): Streak => ({ endpointId, successes: 0, failures: 0 });

/** Results of another endpoint, older than the newest, or about the prober itself change nothing. */
export const addResult = (streak: Streak, result: ProbeResult): Streak => {
  if (result.endpointId !== streak.endpointId || result.outcome === 'NotProbed') return streak;
  if (streak.newest && result.at < streak.newest.at) return streak;
  return result.outcome === 'Ok'
    ? { ...streak, successes: streak.successes + 1, failures: 0, newest: result }
    : { ...streak, successes: 0, failures: streak.failures + 1, newest: result };
};

type Judged = Pick<Publication, 'endpoint' | 'verdict' | 'publishedAt'>;
type Thresholds = Pick<HealthCheck, 'failureThreshold' | 'successThreshold'>;

const starting = ({ verdict, publishedAt }: Judged, now: number): boolean =>
  verdict.state === 'Unknown' && now < publishedAt + START_GRACE_MS;

/** True while further probes right now could change the verdict. */
export const inDoubt = (
  publication: Judged,
  { successes, failures }: Streak,
  { failureThreshold, successThreshold }: Thresholds,
  now: number,
): boolean => {
  if (successes > 0) return publication.verdict.state !== 'Healthy' && successes < successThreshold;
  if (failures === 0 || publication.verdict.state === 'Unhealthy' || starting(publication, now)) return false;
  return failures < failureThreshold;
};

const flipped = (state: Verdict['state'], { at, outcome, exitAddress }: ProbeResult): Verdict => ({
  state,
  since: at,
  checkedAt: at,
  outcome,
  ...(exitAddress === undefined ? {} : { exitAddress }),
});

const stillHealthy = (verdict: Verdict, { at, exitAddress }: ProbeResult): Verdict =>
  exitAddress === undefined || exitAddress === verdict.exitAddress
    ? verdict
    : { ...verdict, checkedAt: at, exitAddress };

/** An Unknown verdict was settled by no probe: its time is the publication's, by another clock. */
const isStale = ({ state, checkedAt }: Verdict, { at }: ProbeResult): boolean =>
  state !== 'Unknown' && at < checkedAt;

/** The verdict after these results; the very same object when there is nothing new to say. */
export const judge = (
  publication: Judged,
  { endpointId, successes, failures, newest }: Streak,
  { failureThreshold, successThreshold }: Thresholds,
  now: number,
): Verdict => {
  const { verdict } = publication;
  if (endpointId !== publication.endpoint.id || !newest || isStale(verdict, newest)) return verdict;
  if (verdict.state === 'Healthy' && successes > 0) return stillHealthy(verdict, newest);
  if (successes >= successThreshold) return flipped('Healthy', newest);
  if (verdict.state === 'Unhealthy' || starting(publication, now)) return verdict;
  return failures >= failureThreshold ? flipped('Unhealthy', newest) : verdict;
};

/** A record with the verdicts that these streaks lead to; the very same object when none changes. */
export const applyStreaks = (record: ProxyRecord, streaks: readonly Streak[], now: number): ProxyRecord => {
  let changed = false;
  const judged = <P extends Publication>(publication: P): P => {
    const streak = streaks.find(({ endpointId }) => endpointId === publication.endpoint.id);
    const verdict = streak ? judge(publication, streak, record.healthCheck, now) : publication.verdict;
    if (verdict === publication.verdict) return publication;
    changed = true;
    return { ...publication, verdict };
  };
  const next: ProxyRecord = {
    ...record,
    ...(record.serving ? { serving: judged(record.serving) } : {}),
    ...(record.candidate ? { candidate: judged(record.candidate) } : {}),
    draining: record.draining.map(judged),
  };
  return changed ? next : record;
};
