/** One run over the fleet: every shard that nobody else holds has its round, side by side, in a bounded time. */

import { SystemError, hasCode } from '#shared/app/errors.ts';
import { bucketRange } from '#shared/domain/shard.ts';
import { isHeld } from '#shared/firestore/locks.ts';

import type { Running } from './parts.ts';
import type { Target } from './probe/target.ts';
import { countRound, merged, type RoundReport, type ShardReport } from './report.ts';
import { claimShard, runClaimed, type Run, type Shard } from './round.ts';
import { METRICS, raise } from './signals.ts';

/** Milliseconds from the start of a run: no probe ends later, no write begins later, and then it is answered. */
export const RUN_LIMITS = { probing: 46_000, writing: 51_000, answer: 55_000 } as const;

export const shardsOf = (installation: string, count: number): readonly Shard[] =>
  Array.from({ length: count }, (_, index) => ({
    name: `${installation}-${index}`,
    ...(count > 1 ? { buckets: bucketRange(index, count) } : {}),
  }));

/** What an instance remembers between its runs. */
export interface RunMemory {
  readonly holder: string;
  readonly published: Map<string, string>;
}

const once = <T>(work: () => Promise<T>): (() => Promise<T>) => {
  let result: Promise<T> | undefined;
  return () => (result ??= work());
};

const makeRun = (memory: RunMemory, { clock, probing, shards }: Running): Run => {
  const began = clock.monotonic();
  return {
    ...memory,
    shards,
    probingUntil: began + RUN_LIMITS.probing,
    writingUntil: began + RUN_LIMITS.writing,
    seen: once((): Promise<readonly Target[]> => probing.seen()),
    endpoints: new Set(),
  };
};

type ShardResult = ShardReport | 'held' | { readonly error: unknown };

const runShard = async (shard: Shard, run: Run, running: Running): Promise<ShardResult> => {
  try {
    const claim = await claimShard(shard, run, running);
    return isHeld(claim) ? 'held' : await runClaimed(claim, shard, run, running);
  } catch (error) {
    // Then another holds it now.
    if (hasCode(error, 'Conflict')) return 'held';
    running.log.error('round of a shard failed', error, { shard: shard.name });
    return { error };
  }
};

const isReport = (result: ShardResult): result is ShardReport =>
  typeof result === 'object' && 'endpoints' in result;

const runAll = async (memory: RunMemory, running: Running): Promise<RoundReport> => {
  const run = makeRun(memory, running);
  const shards = shardsOf(running.installation, running.shards);
  const results = await Promise.all(shards.map((shard) => runShard(shard, run, running)));
  const reports = results.filter(isReport);
  const errors = results.flatMap((result) =>
    typeof result === 'object' && 'error' in result ? [result.error] : [],
  );
  if (reports.length === 0 && errors.length > 0) throw errors[0];
  if (reports.length === 0) return { kind: 'skipped', why: 'other rounds hold the shards' };
  if (reports.length === shards.length) running.probing.retain(run.endpoints);
  const held = results.length - reports.length - errors.length;
  const counts = { done: reports.length, held, failed: errors.length };
  const times = running.probing.takeTimes();
  running.metrics.record(METRICS.probeTimes, {}, times);
  return merged(reports, counts, times);
};

/**
 * Runs a round, unless others hold every shard. Throws `Transient` when Firestore is away, or when something hangs for so
 * long that the round cannot end in its time; what it has written by then stays.
 */
export const runRound = async (memory: RunMemory, running: Running): Promise<RoundReport> => {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    raise(running, 'RoundCutOff', 'the round did not end in its time');
    reject(new SystemError('Transient', `the round was cut off after ${RUN_LIMITS.answer} ms`));
  }, RUN_LIMITS.answer);
  try {
    const report = await Promise.race([runAll(memory, running), late]);
    countRound(report, running);
    return report;
  } finally {
    clearTimeout(timer);
  }
};
