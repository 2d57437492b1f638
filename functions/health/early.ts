/** Probes that do not wait for a round: endpoints that were just published, and ones that crawlers complain about. */

import { SystemError } from '#shared/app/errors.ts';
import { pause } from '#shared/app/wait.ts';
import { publications, type ProxyRecord, type Publication } from '#shared/domain/record.ts';
import { START_GRACE_MS, addResult, judge, startStreak, type Streak } from '#shared/domain/verdict-rules.ts';
import type { StoredRecord } from '#shared/firestore/records.ts';

import { commitStreaks } from './commit.ts';
import { nextTryAfter } from './decide.ts';
import { RECHECK_MS, anchored, examine } from './examine.ts';
import { nudgeAll, reportChange } from './flips.ts';
import type { Running } from './parts.ts';

/** How long a message may be worked on. */
const PUBLISHED_MS = START_GRACE_MS;
const REPORT_MS = 240_000;
/** A record that was read longer ago is read again, to see whether the endpoint is still there. */
const LOOK_AGAIN_MS = 4000;

const find = (record: ProxyRecord | undefined, endpointId: string): Publication | undefined =>
  record && publications(record).find(({ endpoint }) => endpoint.id === endpointId);

const nudge = async (running: Running, { ref }: ProxyRecord): Promise<void> => {
  const unpublished = await nudgeAll(running, [ref]);
  if (unpublished.length > 0) throw new SystemError('Transient', 'a verdict nudge could not be published');
};

/** Writes a verdict that a streak has led to, and passes it on, whoever wrote it first. */
const settle = async (
  running: Running,
  stored: StoredRecord,
  publication: Publication,
  streak: Streak,
  now: () => number,
): Promise<void> => {
  const after = await commitStreaks(running, stored, [streak], now);
  const verdict = find(after, publication.endpoint.id)?.verdict;
  if (!after || !verdict || verdict.state === publication.verdict.state) return;
  reportChange(running, after.ref, publication, verdict);
  await nudge(running, after);
};

/** With a target that is not there, a failure says too little; rounds know how to do with the others. */
const seesAll = async ({ probing, targets }: Running): Promise<boolean> =>
  (await probing.seen()).length === targets.length;

/** Tries an endpoint until it is healthy, it is gone or somebody else has judged it, or it has had its time. */
const probePublished = async (
  running: Running,
  first: StoredRecord,
  published: Publication,
): Promise<void> => {
  const { probing, clock, records, pools } = running;
  const endpointId = published.endpoint.id;
  const began = clock.monotonic();
  const now = anchored(first.readTime, clock);
  let stored = first;
  let readAt = began;
  let publication = published;
  let streak = startStreak(endpointId);
  for (let attempt = 0; ; attempt += 1) {
    const { healthCheck } = stored.record;
    const slot = await pools.early.acquire();
    try {
      streak = addResult(streak, await probing.probe(publication, healthCheck, now()));
    } finally {
      slot.release();
    }
    const verdict = judge(publication, streak, healthCheck, now());
    if (verdict.state === 'Unhealthy' && !(await seesAll(running))) return;
    if (verdict !== publication.verdict) return settle(running, stored, publication, streak, now);
    const wait = streak.successes > 0 ? RECHECK_MS : nextTryAfter(attempt);
    if (clock.monotonic() - began + wait > PUBLISHED_MS) return;
    await pause(wait);
    if (clock.monotonic() - readAt < LOOK_AGAIN_MS) continue;
    const fresh = await records.read(stored.record.ref.uid);
    const still = find(fresh?.record, endpointId);
    if (!fresh || still?.verdict.state !== 'Unknown') return;
    stored = fresh;
    publication = still;
    readAt = clock.monotonic();
  }
};

export type EarlyProbes = (uid: string) => Promise<void>;

/**
 * Probes what is not yet known of a proxy. A message that comes again finds everything settled: then the nudge is repeated,
 * since nobody can tell whether the first one got out. Throws `Transient`, so that the message comes again.
 */
export const makePublishedProbes = (running: Running): EarlyProbes => {
  const inFlight = new Map<string, Promise<void>>();
  const once = (stored: StoredRecord, publication: Publication): Promise<void> => {
    const { id } = publication.endpoint;
    const before = inFlight.get(id);
    if (before) return before;
    const probes = probePublished(running, stored, publication).finally(() => inFlight.delete(id));
    inFlight.set(id, probes);
    return probes;
  };
  return async (uid) => {
    const stored = await running.records.read(uid);
    if (!stored || stored.record.gone || stored.record.installation !== running.installation) return;
    const all = publications(stored.record);
    const unknown = all.filter(({ verdict }) => verdict.state === 'Unknown');
    if (all.length > 0 && unknown.length === 0) await nudge(running, stored.record);
    await Promise.all(unknown.map((publication) => once(stored, publication)));
  };
};

/** Judges the serving endpoint now. A prober that cannot see its target directly condemns nothing. */
const probeReported = async (running: Running, stored: StoredRecord, serving: Publication): Promise<void> => {
  const { pools, probing, clock, log } = running;
  const { healthCheck, ref } = stored.record;
  const now = anchored(stored.readTime, clock);
  const streak = await examine(probing, {
    publication: serving,
    check: healthCheck,
    streak: startStreak(serving.endpoint.id),
    pool: pools.early,
    suspects: pools.suspects,
    now,
    deadline: now() + REPORT_MS,
  });
  const verdict = judge(serving, streak, healthCheck, now());
  if (verdict === serving.verdict) return;
  if (verdict.state === 'Unhealthy' && !(await seesAll(running))) {
    log.warning('reported endpoint not judged: the control probe fails', { ...ref });
    return;
  }
  await settle(running, stored, serving, streak, now);
};

/** `again`: the message was delivered before, and may have been cut off between verdict and nudge. */
export const makeReportProbes = (running: Running): ((uid: string, again: boolean) => Promise<void>) => {
  const inFlight = new Map<string, Promise<void>>();
  const probeServing = async (uid: string, again: boolean): Promise<void> => {
    const stored = await running.records.read(uid);
    const serving = stored?.record.serving;
    if (!stored || !serving || stored.record.installation !== running.installation) return;
    if (again && serving.verdict.state === 'Unhealthy') await nudge(running, stored.record);
    await probeReported(running, stored, serving);
  };
  // A hundred crawlers that complain at once are answered by one probe.
  return (uid, again) => {
    const probes = inFlight.get(uid) ?? probeServing(uid, again).finally(() => inFlight.delete(uid));
    inFlight.set(uid, probes);
    return probes;
  };
};
