/** One run: read everything, plan, then do it. Nudges and sightings go on whatever becomes of the deletions. */

import type { HttpHandler, HttpReply, HttpRequest } from '#shared/app/http.ts';
import { problem } from '#shared/app/http.ts';
import type { Ids } from '#shared/app/ids.ts';
import type { Metrics } from '#shared/app/metrics.ts';
import { parentOf } from '#shared/app/trace-context.ts';
import { noTracing, type Tracing } from '#shared/app/tracing.ts';
import type { Tombstone } from '#shared/firestore/sweep.ts';
import type { Publisher } from '#shared/pubsub/publisher.ts';

import { decide, type Plan } from './decide.ts';
import { digestOf } from './digest.ts';
import type { Nudge, NudgeReason } from './nudges.ts';
import { deletionsMark, foundKey, identityOf, isMachine } from './observation.ts';
import { observe, type Reading, type Sources } from './observe.ts';
import { inParallel } from './parallel.ts';
import { removeAll, type Removal } from './remove.ts';
import { planReport, runReport, type Deletions, type Run } from './report.ts';
import { parseMode, type Mode } from './request.ts';

/** How long one run may delete before another may take over. Milliseconds. */
const LOCK_MS = 180_000;
/** Deletions stop this long before the lock can pass to another run. */
const LOCK_MARGIN_MS = 60_000;
const PUBLISH_WIDTH = 64;
const HOUR_MS = 3_600_000;

export interface Dependencies extends Sources {
  readonly publisher: Pick<Publisher, 'change'>;
  /** `undefined` when another run has the lock. */
  readonly lock: (holder: string, ttlMs: number) => Promise<{ release(): Promise<void> } | undefined>;
  /** Resolves with the UIDs of those that are there no more. */
  readonly sweep: (tombstones: readonly Tombstone[]) => Promise<readonly string[]>;
  readonly ids: Ids;
  readonly metrics: Metrics;
  readonly tracing?: Tracing;
}

/** Runs one step; its failure is logged and named, and keeps no other step from being done. */
const attempt = async <T>(
  what: string,
  fallback: T,
  failures: string[],
  { log }: Dependencies,
  step: () => Promise<T>,
): Promise<T> => {
  try {
    return await step();
  } catch (error) {
    log.error(`${what} failed`, error);
    failures.push(what);
    return fallback;
  }
};

const logRemoval = (removal: Removal, { log, metrics }: Dependencies): void => {
  const { outcome, rule, provider } = removal;
  const result = outcome.kind === 'kept' ? outcome.why : outcome.kind;
  const { kind, name, zone, id, uid } = identityOf(removal);
  metrics.count('gc_deletions', { kind, result });
  const fields = {
    provider,
    [kind]: name,
    zone,
    [kind === 'machine' ? 'instanceId' : 'id']: id,
    uid,
    rule,
    result,
  };
  if (outcome.kind === 'failed')
    log.warning(`orphan ${kind} not deleted`, { ...fields, error: outcome.error });
  else log.info(outcome.kind === 'deleted' ? `orphan ${kind} deleted` : `orphan ${kind} kept`, fields);
};

const removeUnderLock = async (plan: Plan, reading: Reading, deps: Dependencies): Promise<Deletions> => {
  const start = deps.clock.monotonic();
  const lock = await deps.lock(deps.ids.token(), LOCK_MS);
  if (!lock) {
    deps.log.info('another run is deleting machines: this one leaves them alone');
    return { kind: 'lockHeld' };
  }
  try {
    // Before they go: whatever becomes of this run, the next ones look at what they leave behind.
    const { now } = reading.observation;
    if (plan.deletions.some(isMachine)) await deps.sightings.add([deletionsMark(now)], now);
    const removals = await removeAll(plan.deletions, {
      ...deps,
      refs: new Map(reading.fleet.records.map(({ record }) => [record.ref.uid, record.ref])),
      outOfTime: () => deps.clock.monotonic() - start > LOCK_MS - LOCK_MARGIN_MS,
    });
    for (const removal of removals) logRemoval(removal, deps);
    // A machine that is still shown after an accepted call is not asked to go again before it was seen for a while.
    await deps.sightings.remove(removals.filter(({ outcome }) => outcome.kind === 'deleted').map(foundKey));
    return { kind: 'done', removals };
  } finally {
    await lock.release();
  }
};

type Rule = Removal['rule'];

const freeze = (plan: Plan, { log, metrics, installation }: Dependencies): Deletions => {
  const digest = digestOf(installation, plan.deletions);
  for (const { reason, message } of plan.frozen) {
    metrics.count('gc_frozen', { reason });
    log.warning('deletions are frozen', { reason, why: message, digest, condemned: plan.deletions.length });
  }
  return { kind: 'frozen', why: plan.frozen };
};

const removeOrphans = (
  plan: Plan,
  reading: Reading,
  mode: Mode,
  deps: Dependencies,
): Promise<Deletions> | Deletions => {
  // A confirmed digest was compared before anything was done.
  if (plan.frozen.length > 0 && mode.kind !== 'confirm') return freeze(plan, deps);
  return plan.deletions.length === 0 ? { kind: 'none' } : removeUnderLock(plan, reading, deps);
};

/**
 * Not the key that other messages of this Proxy have: one that is held up, or stalls after a message went to the dead
 * letters, must not hold up the nudge that mends it. Nor one for ever, for the same reason.
 */
const keyOf = ({ ref }: Nudge, { clock }: Dependencies): string =>
  `${ref.uid}/${Math.floor(clock.now() / HOUR_MS)}`;

const nudgeAll = async (nudges: readonly Nudge[], failures: string[], deps: Dependencies) => {
  const sent = await inParallel(nudges, PUBLISH_WIDTH, (nudge) => {
    const { ref, ...rest } = nudge;
    const { reason } = rest;
    return attempt<NudgeReason | undefined>(`nudge of ${ref.uid}`, undefined, failures, deps, async () => {
      await deps.publisher.change({ ...ref, ...rest }, keyOf(nudge, deps));
      return reason;
    });
  });
  const reasons = sent.filter((reason) => reason !== undefined);
  for (const reason of reasons) deps.metrics.count('gc_nudges', { reason });
  return reasons;
};

const act = async (plan: Plan, reading: Reading, mode: Mode, deps: Dependencies): Promise<Run> => {
  const failures: string[] = [];
  const { installation, sightings, installations } = deps;
  const { rememberCluster, sweep } = plan;
  const nudged = await nudgeAll(plan.nudges, failures, deps);
  await attempt('remembering the cluster', undefined, failures, deps, async () => {
    if (rememberCluster !== undefined) await installations.remember(rememberCluster);
  });
  await attempt('recording sightings', undefined, failures, deps, async () => {
    await sightings.add(plan.sightings.add, reading.observation.now);
    await sightings.remove(plan.sightings.remove);
  });
  const deletions = await attempt<Deletions>('deleting orphans', { kind: 'none' }, failures, deps, async () =>
    removeOrphans(plan, reading, mode, deps),
  );
  const swept = await attempt<readonly string[]>('sweeping tombstones', [], failures, deps, () =>
    deps.sweep(sweep),
  );
  await attempt('writing the index of the fleet', undefined, failures, deps, () =>
    deps.fleet.save(reading.fleet, swept),
  );
  if (deletions.kind === 'done' && deletions.removals.some(({ outcome }) => outcome.kind === 'failed'))
    failures.push('deleting orphans');
  return { installation, plan, deletions, nudged, swept, failures };
};

/** Lists that failed altogether; an unreachable zone is doubt enough to keep its machines, not to fail the run. */
const isBlind = ({ observation: { listings, leftovers = [], proxies, cluster } }: Reading): boolean =>
  [proxies, cluster, ...listings, ...leftovers].some(({ kind }) => kind === 'unknown');

const reply = (run: Run, reading: Reading): HttpReply => {
  const body = runReport(run);
  if (run.failures.length === 0 && !isBlind(reading)) return { status: 200, body };
  const detail = [...run.failures.map((what) => `${what} failed`), ...run.plan.doubts]
    .slice(0, 20)
    .join('; ');
  return problem(503, 'Unavailable', detail, { ...body }, { 'retry-after': '60' });
};

const countFindings = ({ judgements, leftovers = [] }: Plan, { metrics }: Dependencies): void => {
  for (const [kind, all] of [
    ['machine', judgements],
    ['leftover', leftovers],
  ] as const)
    for (const [rule, found] of Map.groupBy<Rule, { readonly rule: Rule }>(
      all,
      (judgement) => judgement.rule,
    ))
      metrics.count('gc_findings', { kind, rule }, found.length);
};

const run = async (mode: Mode, deps: Dependencies): Promise<HttpReply> => {
  const reading = await observe(deps, mode.kind !== 'run');
  const plan = decide(reading.observation);
  if (mode.kind === 'dryRun') return { status: 200, body: planReport(deps.installation, plan) };
  const digest = digestOf(deps.installation, plan.deletions);
  if (mode.kind === 'confirm' && mode.digest !== digest)
    return problem(
      409,
      'PlanChanged',
      'This is not the plan that was printed. Nothing was done; look again.',
      {
        plan: planReport(deps.installation, plan),
      },
    );
  countFindings(plan, deps);
  const result = await act(plan, reading, mode, deps);
  deps.log.info('gc run', { ...runReport(result) });
  return reply(result, reading);
};

const route = async (request: HttpRequest, deps: Dependencies): Promise<HttpReply> => {
  const { method, path, query } = request;
  if (path === '/health' && method === 'GET') return { status: 200, body: { status: 'ok' } };
  if (path !== '/') return problem(404, 'NotFound', 'There is only POST / and GET /health.');
  if (method !== 'POST') return problem(405, 'MethodNotAllowed', 'A run is a POST.', {}, { allow: 'POST' });
  const parsed = parseMode(query);
  if ('refused' in parsed) return problem(400, 'InvalidRequest', parsed.refused);
  const { tracing = noTracing } = deps;
  return tracing.span('gc.run', { parent: parentOf(request) }, () => run(parsed.mode, deps));
};

/** POST / runs; `?dryRun=true` prints the plan and does nothing; `?confirm=<digest>` releases a frozen plan. */
export const makeHandler =
  (deps: Dependencies): HttpHandler =>
  (request) =>
    route(request, deps);
