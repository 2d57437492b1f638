/** One round of one shard: probe everything that is due, judge the whole, then write what has changed and pass it on. */

import { pause } from '#shared/app/wait.ts';
import type { ProxyRef } from '#shared/domain/proxy.ts';
import { publications } from '#shared/domain/record.ts';
import type { BucketRange } from '#shared/domain/shard.ts';
import { inDoubt, type Streak } from '#shared/domain/verdict-rules.ts';
import { isHeld, type Held } from '#shared/firestore/locks.ts';
import type { StoredRecord } from '#shared/firestore/records.ts';
import type { RoundClaim, RoundState } from '#shared/firestore/rounds.ts';

import { commitAll } from './commit.ts';
import {
  conclude,
  findingOf,
  isChange,
  planRound,
  startAfter,
  turnsBad,
  type Conclusion,
  type Finding,
  type Task,
} from './decide.ts';
import { anchored, examine } from './examine.ts';
import { nudgeAll } from './flips.ts';
import type { Running } from './parts.ts';
import type { Target } from './probe/target.ts';
import { countOutcomes, wasProbed, type ShardReport } from './report.ts';
import { METRICS, raise } from './signals.ts';
import { showViews } from './views.ts';

/** A part of the fleet that one round is for. */
export interface Shard {
  readonly name: string;
  /** Absent = all. */
  readonly buckets?: BucketRange;
}

/** A round that was cut off holds its shard for so long; ticks are 60 s apart. */
export const CLAIM_MS = 57_000;
/** A tick that comes a little early waits for the claim of the round before to end. */
const PATIENCE_MS = 8000;
/** Rounds come every minute; so long after the last one, some have not. */
const MISSED_MS = 180_000;
const MAX_DOUBTS = 500;

/** What the shards of one run share. */
export interface Run {
  readonly holder: string;
  readonly shards: number;
  /** By shard: `flipsId` of the last list whose nudges are all out. */
  readonly published: Map<string, string>;
  /** Milliseconds of the monotonic clock: no probe ends later, no write begins later. */
  readonly probingUntil: number;
  readonly writingUntil: number;
  /** The targets that are reached directly; asked once for all shards. */
  seen(): Promise<readonly Target[]>;
  /** Ids of all endpoints that any shard has read. */
  readonly endpoints: Set<string>;
}

interface Reading {
  readonly stored: ReadonlyMap<string, StoredRecord>;
  readonly tasks: readonly Task[];
}

const read = async (
  claim: RoundClaim,
  { name, buckets }: Shard,
  run: Run,
  running: Running,
): Promise<Reading> => {
  const { log, metrics, installation } = running;
  const selection = await running.records.probed(installation, buckets);
  await showViews(selection, name, running);
  const { records, unreadable } = selection;
  for (const uid of unreadable) log.warning('record not readable, not probed', { uid });
  if (unreadable.length > 0) metrics.count(METRICS.unreadable, {}, unreadable.length);
  const all = records.map(({ record }) => record);
  for (const { endpoint } of all.flatMap(publications)) run.endpoints.add(endpoint.id);
  return {
    stored: new Map(records.map((stored) => [stored.record.ref.uid, stored])),
    tasks: planRound(all, claim, claim.state.doubts),
  };
};

const probeAll = (
  tasks: readonly Task[],
  targets: readonly Target[],
  run: Run,
  now: () => number,
  running: Running,
): Promise<readonly Finding[]> => {
  const { pools, probing, clock, ids } = running;
  const { live, suspects } = pools;
  const deadline = now() + run.probingUntil - clock.monotonic();
  const probeOne = async (task: Task, index: number): Promise<Finding> => {
    // Without a target in sight every proxy would look dead.
    if (targets.length === 0) return findingOf(task, task.streak, now());
    await pause(startAfter(index, tasks.length, run.shards, ids.fraction()));
    const pool = task.pool === 'live' ? live : suspects;
    const streak = await examine(probing, { ...task, pool, suspects, targets, now, deadline });
    return findingOf(task, streak, now());
  };
  return Promise.all(tasks.map(probeOne));
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

/** Publishes what earlier rounds may have left unpublished. Resolves with what still is. */
const repeatNudges = async ({ state }: RoundClaim, running: Running): Promise<readonly ProxyRef[]> => {
  if (state.flips.length === 0) return [];
  running.log.info('repeating nudges of an earlier round', { proxies: state.flips.length });
  return nudgeAll(running, state.flips);
};

const judgeRound = async (
  findings: readonly Finding[],
  { state }: RoundClaim,
  targets: readonly Target[],
  { probing }: Running,
): Promise<Conclusion> => {
  // A target may have gone while the round was under way.
  const still = targets.length > 0 && findings.some(turnsBad) ? await probing.seen() : targets;
  const controlPassed = targets.length > 0 && targets.every((target) => still.includes(target));
  return conclude(findings, controlPassed, state.massFailures);
};

const massFailuresAfter = (conclusion: Conclusion, before: number): number => {
  if (conclusion.kind === 'conclusive') return 0;
  return conclusion.why === 'MassFailure' ? before + 1 : before;
};

const tell = (conclusion: Conclusion, findings: readonly Finding[], shard: Shard, running: Running): void => {
  const { log, metrics } = running;
  const result = conclusion.kind === 'conclusive' ? 'Conclusive' : conclusion.why;
  metrics.count(METRICS.rounds, { result });
  if (conclusion.kind === 'conclusive') return;
  const { name } = shard;
  const fields = { shard: name, endpoints: findings.length, turningBad: findings.filter(turnsBad).length };
  const message = 'health round inconclusive: verdicts stay';
  if (conclusion.why === 'MassFailure') raise(running, 'MassFailure', message, fields);
  else log.warning(message, { why: conclusion.why, ...fields });
};

const tellAge = ({ now, previousAt }: RoundClaim, { name }: Shard, running: Running): void => {
  const ageMs = now - (previousAt ?? now);
  if (ageMs > MISSED_MS)
    raise(running, 'RoundsMissed', 'the round before is long ago', { shard: name, ageMs });
};

const stateAfter = (
  claim: RoundClaim,
  flips: readonly ProxyRef[],
  findings: readonly Finding[],
  conclusion: Conclusion,
  now: number,
  running: Running,
): RoundState => ({
  flips,
  flipsId: flips.length > 0 ? running.ids.token() : '',
  massFailures: massFailuresAfter(conclusion, claim.state.massFailures),
  doubts: conclusion.kind === 'conclusive' ? doubtsOf(findings, now) : [],
});

/** Runs the round of a shard that was claimed. Throws `Conflict` when the shard has passed to another, and `Transient`. */
export const runClaimed = async (
  claim: RoundClaim,
  shard: Shard,
  run: Run,
  running: Running,
): Promise<ShardReport> => {
  const now = anchored(claim.now, running.clock);
  tellAge(claim, shard, running);
  const [unpublished, targets, { stored, tasks }] = await Promise.all([
    repeatNudges(claim, running),
    run.seen(),
    read(claim, shard, run, running),
  ]);
  const findings = await probeAll(tasks, targets, run, now, running);
  const conclusion = await judgeRound(findings, claim, targets, running);
  tell(conclusion, findings, shard, running);

  const believed = conclusion.kind === 'conclusive' ? findings.filter(isChange) : [];
  const changes = Map.groupBy(believed, ({ task }) => task.ref.uid);
  const flips = [
    ...unpublished,
    ...[...changes.values()].flatMap(([first]) => (first ? [first.task.ref] : [])),
  ];
  const next = stateAfter(claim, flips, findings, conclusion, now(), running);
  // Before the verdicts: a crash after this line costs a needless nudge, never a missing one.
  if (!sameState(claim.state, next)) await claim.save(next);
  const failed = await commitAll(running, { changes, stored, now, until: run.writingUntil });
  if (flips.length > 0 && (await nudgeAll(running, flips, (uid) => stored.get(uid)?.record)).length === 0)
    run.published.set(shard.name, next.flipsId);

  return {
    endpoints: findings.length,
    left: findings.filter((finding) => !wasProbed(finding)).length,
    outcomes: countOutcomes(findings),
    changes: changes.size,
    failed,
    conclusion,
  };
};

/** Claims a shard for one round; waits a little for a claim that is about to end. */
export const claimShard = async (
  { name }: Shard,
  run: Run,
  { rounds }: Running,
): Promise<RoundClaim | Held> => {
  const claim = () => rounds.claim(name, run.holder, CLAIM_MS, run.published.get(name) ?? '');
  const first = await claim();
  if (!isHeld(first) || first.heldUntil - first.now > PATIENCE_MS) return first;
  await pause(first.heldUntil - first.now);
  return claim();
};
