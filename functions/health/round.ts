/** One round: probe everything that is due, judge the whole, then write what has changed and pass it on. */

import { hasCode } from '#shared/app/errors.ts';
import { pause } from '#shared/app/wait.ts';
import type { ProxyRef } from '#shared/domain/proxy.ts';
import { publications } from '#shared/domain/record.ts';
import { inDoubt, type Streak } from '#shared/domain/verdict-rules.ts';
import { isHeld, type Held } from '#shared/firestore/locks.ts';
import type { StoredRecord } from '#shared/firestore/records.ts';
import type { RoundClaim, RoundState } from '#shared/firestore/rounds.ts';

import { commitStreaks } from './commit.ts';
import {
  conclude,
  findingOf,
  isChange,
  planRound,
  turnsBad,
  type Conclusion,
  type Finding,
  type Task,
} from './decide.ts';
import { anchored, examine } from './examine.ts';
import { nudgeAll, reportChange } from './flips.ts';
import type { Running } from './parts.ts';
import { makePool } from './pool.ts';

/** No probe may end later in a round than this; what is left of the 55 s is for writing. */
const PROBING_MS = 46_000;
/** A round that was cut off holds its shard for so long; ticks are 60 s apart. */
export const CLAIM_MS = 57_000;
/** A tick that comes a little early waits for the claim of the round before to end. */
const PATIENCE_MS = 8000;
const COMMITS_AT_ONCE = 32;
const MAX_DOUBTS = 500;

export type RoundReport =
  | { readonly kind: 'skipped'; readonly why: string }
  | {
      readonly kind: 'done';
      readonly endpoints: number;
      /** Endpoints that were due, but for which there was no time, or whose probe was not possible. */
      readonly left: number;
      readonly outcomes: Readonly<Record<string, number>>;
      readonly changes: number;
      /** Changes that could not be written; the next round finds them again. */
      readonly failed: number;
      readonly conclusion: Conclusion;
    };

/** What an instance remembers between its rounds. */
export interface RoundMemory {
  readonly holder: string;
  /** `flipsId` of the last list whose nudges are all out. */
  published: string;
}

interface Reading {
  readonly stored: ReadonlyMap<string, StoredRecord>;
  readonly tasks: readonly Task[];
}

const read = async (claim: RoundClaim, running: Running): Promise<Reading> => {
  const { records, unreadable } = await running.records.probed(running.installation);
  for (const uid of unreadable) running.log.warning('record not readable, not probed', { uid });
  if (unreadable.length > 0) running.metrics.count('health_unreadable_records', {}, unreadable.length);
  const all = records.map(({ record }) => record);
  running.probing.retain(new Set(all.flatMap(publications).map(({ endpoint }) => endpoint.id)));
  return {
    stored: new Map(records.map((stored) => [stored.record.ref.uid, stored])),
    tasks: planRound(all, claim, claim.state.doubts),
  };
};

const probeAll = (
  tasks: readonly Task[],
  now: () => number,
  running: Running,
): Promise<readonly Finding[]> => {
  const deadline = now() + PROBING_MS;
  const { live, suspects } = running.pools;
  return Promise.all(
    tasks.map(async (task) => {
      const pool = task.pool === 'live' ? live : suspects;
      const streak = await examine(running.probing, { ...task, pool, suspects, now, deadline });
      return findingOf(task, streak, now());
    }),
  );
};

const wasProbed = ({ task, streak }: Finding): boolean => streak.newest !== task.streak.newest;

const countOutcomes = (findings: readonly Finding[]): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const { streak } of findings.filter(wasProbed)) {
    const outcome = streak.newest?.outcome ?? 'NotProbed';
    counts[outcome] = (counts[outcome] ?? 0) + 1;
  }
  return counts;
};

/** What must not be lost with this instance: endpoints whose failures in a row are not yet enough. */
const doubtsOf = (findings: readonly Finding[], now: number): readonly Streak[] =>
  findings
    .filter(({ task, streak }) => inDoubt(task.publication, streak, task.check, now))
    .map(({ streak }) => streak)
    .slice(0, MAX_DOUBTS);

const sameState = (a: RoundState, b: RoundState): boolean =>
  a.flipsId === b.flipsId &&
  a.massFailures === b.massFailures &&
  a.doubts.length === 0 &&
  b.doubts.length === 0;

const commitAll = async (
  changes: ReadonlyMap<string, readonly Finding[]>,
  { stored }: Reading,
  now: () => number,
  running: Running,
): Promise<number> => {
  const pool = makePool(COMMITS_AT_ONCE);
  const failures = await Promise.all(
    [...changes].map(async ([uid, findings]) => {
      const slot = await pool.acquire();
      try {
        const before = stored.get(uid);
        const streaks = findings.map(({ streak }) => streak);
        const after = before && (await commitStreaks(running, before, streaks, now));
        if (!after) return 0;
        for (const { task, verdict } of findings) reportChange(running, task.ref, task.publication, verdict);
        return 0;
      } catch (error) {
        // One that fails keeps no other from being written.
        running.log.error('verdict not written', error, { uid });
        return 1;
      } finally {
        slot.release();
      }
    }),
  );
  return failures.reduce<number>((sum, failed) => sum + failed, 0);
};

/** Publishes what earlier rounds may have left unpublished. Resolves with what still is. */
const repeatNudges = async ({ state }: RoundClaim, running: Running): Promise<readonly ProxyRef[]> => {
  if (state.flips.length === 0) return [];
  running.log.info('repeating nudges of an earlier round', { proxies: state.flips.length });
  return nudgeAll(running, state.flips);
};

const judgeRound = async (
  findings: readonly Finding[],
  { state }: RoundClaim,
  controlPassed: boolean,
  { probing }: Running,
): Promise<Conclusion> => {
  // The target may have gone while the round was under way.
  const stillPasses = controlPassed && (!findings.some(turnsBad) || (await probing.control()));
  return conclude(findings, stillPasses, state.massFailures);
};

const massFailuresAfter = (conclusion: Conclusion, before: number): number => {
  if (conclusion.kind === 'conclusive') return 0;
  return conclusion.why === 'MassFailure' ? before + 1 : before;
};

const alert = (conclusion: Conclusion, findings: readonly Finding[], { log, metrics }: Running): void => {
  const result = conclusion.kind === 'conclusive' ? 'Conclusive' : conclusion.why;
  metrics.count('health_rounds', { result });
  if (conclusion.kind === 'conclusive') return;
  log.warning('health round inconclusive: verdicts stay', {
    alert: 'ProberBlind',
    why: conclusion.why,
    endpoints: findings.length,
    turningBad: findings.filter(turnsBad).length,
  });
};

const runClaimed = async (claim: RoundClaim, memory: RoundMemory, running: Running): Promise<RoundReport> => {
  const now = anchored(claim.now, running.clock);
  const [unpublished, control, reading] = await Promise.all([
    repeatNudges(claim, running),
    running.probing.control(),
    read(claim, running),
  ]);
  const findings = await probeAll(reading.tasks, now, running);
  const conclusion = await judgeRound(findings, claim, control, running);
  alert(conclusion, findings, running);

  const believed = conclusion.kind === 'conclusive' ? findings.filter(isChange) : [];
  const changes = Map.groupBy(believed, ({ task }) => task.ref.uid);
  const flips = [
    ...unpublished,
    ...[...changes.values()].flatMap(([first]) => (first ? [first.task.ref] : [])),
  ];
  const next: RoundState = {
    flips,
    flipsId: flips.length > 0 ? running.ids.token() : '',
    massFailures: massFailuresAfter(conclusion, claim.state.massFailures),
    doubts: conclusion.kind === 'conclusive' ? doubtsOf(findings, now()) : [],
  };
  // Before the verdicts: a crash after this line costs a needless nudge, never a missing one.
  if (!sameState(claim.state, next)) await claim.save(next);
  const failed = await commitAll(changes, reading, now, running);
  if (flips.length > 0 && (await nudgeAll(running, flips)).length === 0) memory.published = next.flipsId;

  const outcomes = countOutcomes(findings);
  for (const [outcome, count] of Object.entries(outcomes))
    running.metrics.count('health_probes', { outcome }, count);
  const left = findings.filter((finding) => !wasProbed(finding)).length;
  if (left > 0) running.metrics.count('health_endpoints_left', {}, left);
  return {
    kind: 'done',
    endpoints: findings.length,
    left,
    outcomes,
    changes: changes.size,
    failed,
    conclusion,
  };
};

const claimShard = async (
  memory: RoundMemory,
  { rounds, installation }: Running,
): Promise<RoundClaim | Held> => {
  const claim = () => rounds.claim(`${installation}-0`, memory.holder, CLAIM_MS, memory.published);
  const first = await claim();
  if (!isHeld(first) || first.heldUntil - first.now > PATIENCE_MS) return first;
  await pause(first.heldUntil - first.now);
  return claim();
};

/** Runs a round, unless another one is under way. Throws `Transient` when Firestore is away. */
export const runRound = async (memory: RoundMemory, running: Running): Promise<RoundReport> => {
  const claim = await claimShard(memory, running);
  if (isHeld(claim)) return { kind: 'skipped', why: 'another round holds the shard' };
  try {
    return await runClaimed(claim, memory, running);
  } catch (error) {
    if (!hasCode(error, 'Conflict')) throw error;
    return { kind: 'skipped', why: 'the shard passed to another round' };
  }
};
