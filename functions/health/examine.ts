/** Probes one endpoint until its verdict is beyond doubt, or time is short. */

import type { Clock } from '#shared/app/clock.ts';
import { pause } from '#shared/app/wait.ts';
import type { HealthCheck } from '#shared/domain/proxy.ts';
import type { Publication } from '#shared/domain/record.ts';
import { addResult, inDoubt, type Streak } from '#shared/domain/verdict-rules.ts';

import { inPool, type Pool } from './pool.ts';
import type { Target } from './probe/target.ts';
import type { Probing } from './probing.ts';

/** Between two probes while in doubt. */
export const RECHECK_MS = 1000;
/** A probe that takes longer than this goes on among the suspects. */
const PATIENCE_MS = 500;

/** The server's clock as a function of ours: what it said once, plus what has passed here since. */
export const anchored = (serverNow: number, clock: Clock): (() => number) => {
  const start = clock.monotonic();
  return () => Math.floor(serverNow + clock.monotonic() - start);
};

export interface Examination {
  readonly publication: Publication;
  readonly check: HealthCheck;
  readonly streak: Streak;
  readonly pool: Pool;
  readonly suspects: Pool;
  /** What is probed with; all targets when absent. */
  readonly targets?: readonly Target[];
  readonly now: () => number;
  /** No probe may end later than this; by the same clock as `now`. */
  readonly deadline: number;
}

/** The streak with what was found; unchanged when there was no time for a single probe. */
export const examine = async (probing: Probing, examination: Examination): Promise<Streak> => {
  const { publication, check, suspects, targets, now, deadline } = examination;
  let { streak, pool } = examination;
  for (;;) {
    const before = streak.newest;
    streak = await inPool(pool, suspects, PATIENCE_MS, async () => {
      const at = now();
      // A probe with less than its time would fail for want of it.
      if (at + check.timeoutSeconds * 1000 > deadline) return streak;
      return addResult(streak, await probing.probe(publication, check, at, targets));
    });
    if (streak.newest === before || !inDoubt(publication, streak, check, now())) return streak;
    pool = suspects;
    await pause(RECHECK_MS);
  }
};
