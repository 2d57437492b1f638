/**
 * Commits a batch of operations on one lease document. It starts from the version that this instance saw last, so that a
 * warm acquire costs no read; the precondition on that version makes this safe. The ids were chosen before the write, so
 * that the same operations can be applied again after any error: a lease that is there was granted.
 */

import type { Clock } from '#shared/app/clock.ts';
import { SystemError, hasCode } from '#shared/app/errors.ts';
import type { Ids } from '#shared/app/ids.ts';
import { backoff, pause } from '#shared/app/wait.ts';
import type { Metrics } from '#shared/app/metrics.ts';
import type { Gate } from '#shared/domain/gate.ts';
import type { LeaseDocument } from '#shared/domain/lease.ts';
import { applyOperation, type LeaseOperation, type LeaseOutcome } from '#shared/domain/lease-rules.ts';
import type { IdempotencyEntry, IdempotencyStore } from '#shared/firestore/idempotency.ts';
import { newest, versionTime, type LeaseStore, type StoredLeases } from '#shared/firestore/leases.ts';
import type { ServerTime } from '#shared/firestore/server-time.ts';

import { withoutYielding } from './yielding.ts';

/** An operation with what its commit has to leave behind, if it is granted. */
export interface Submission {
  readonly operation: LeaseOperation;
  readonly entry?: IdempotencyEntry;
  /** The caller has other proxies to ask: it is answered `contended` when another instance begins to use this one. */
  readonly mayYield?: boolean;
}

export type SubmissionOutcome =
  /** With the gate that it was judged by. */
  | (LeaseOutcome & { readonly gate: Gate })
  | { readonly kind: 'contended' }
  /** There is no lease document with this UID. */
  | { readonly kind: 'missing' }
  /** The same `Idempotency-Key` was granted before: answer from its entry. */
  | { readonly kind: 'replay'; readonly entry: IdempotencyEntry };

export interface BatchCommitOptions {
  readonly leases: Pick<LeaseStore, 'read' | 'commit'>;
  readonly idempotency: Pick<IdempotencyStore, 'read' | 'forget'>;
  readonly time: ServerTime;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly metrics: Metrics;
}

/** Documents that are remembered; the least recently used one is forgotten. */
const REMEMBERED = 2_000;
/** Firestore's time is asked again when its last reply is older. */
const TIME_MAX_AGE_MS = 60_000;
/** A document that another instance writes too is avoided for so long. */
const CONTENDED_MS = 60_000;
/** All tries of one batch together. */
const DEADLINE_MS = 10_000;

export interface Waiting {
  readonly submission: Submission;
  readonly resolve: (outcome: SubmissionOutcome) => void;
  readonly reject: (error: unknown) => void;
}

export interface BatchCommit {
  /** Answers every submission of the batch, or throws. */
  commit(uid: string, batch: readonly Waiting[], seen: StoredLeases | undefined): Promise<void>;
  /** The newest version that this instance read or wrote, if it still remembers it. */
  remembered(uid: string): StoredLeases | undefined;
  /** True when a commit met another one within the last minute. */
  isContended(uid: string): boolean;
}

interface Judged {
  readonly document: LeaseDocument;
  readonly outcomes: readonly LeaseOutcome[];
}

const judgeAll = (document: LeaseDocument, batch: readonly Waiting[], now: number): Judged => {
  const outcomes: LeaseOutcome[] = [];
  let current = document;
  for (const { submission } of batch) {
    const judgement = applyOperation(current, submission.operation, now);
    current = judgement.document;
    outcomes.push(judgement.outcome);
  }
  return { document: current, outcomes };
};

/** What gives up slots comes first, so that who waits for one in the same batch gets it. */
const releasesFirst = (batch: readonly Waiting[]): readonly Waiting[] => {
  const isRelease = ({ submission }: Waiting): boolean => submission.operation.kind === 'release';
  return [...batch.filter(isRelease), ...batch.filter((waiting) => !isRelease(waiting))];
};

/** A lease that memory does not know may have been granted elsewhere: only a fresh read may say that it is over. */
const needsFreshRead = (batch: readonly Waiting[], outcomes: readonly LeaseOutcome[]): boolean =>
  batch.some(
    ({ submission }, index) => submission.operation.kind !== 'acquire' && outcomes[index]?.kind === 'ended',
  );

/** Entries of acquires that this very judgement granted; one granted by an earlier try has stored its own already. */
const newEntries = (
  before: LeaseDocument,
  batch: readonly Waiting[],
  outcomes: readonly LeaseOutcome[],
): readonly IdempotencyEntry[] => {
  const live = new Set(Object.values(before.leases).map(({ id }) => id));
  return batch.flatMap(({ submission }, index) => {
    const isNew = outcomes[index]?.kind === 'granted' && !live.has(submission.operation.id);
    return isNew && submission.entry ? [submission.entry] : [];
  });
};

const settle = (
  batch: readonly Waiting[],
  outcomeOf: (index: number) => SubmissionOutcome | undefined,
): void => {
  for (const [index, waiting] of batch.entries()) {
    const outcome = outcomeOf(index);
    if (outcome) waiting.resolve(outcome);
    else waiting.reject(new SystemError('Transient', 'a submission was left without an outcome'));
  }
};

/** The documents that this instance saw last. */
const makeMemory = (leases: Pick<LeaseStore, 'read'>) => {
  const remembered = new Map<string, StoredLeases>();
  const put = (uid: string, stored: StoredLeases | undefined): void => {
    remembered.delete(uid);
    if (stored) remembered.set(uid, stored);
    const [oldest] = remembered.keys();
    if (oldest !== undefined && remembered.size > REMEMBERED) remembered.delete(oldest);
  };
  return {
    get: (uid: string): StoredLeases | undefined => remembered.get(uid),
    put,
    async read(uid: string): Promise<StoredLeases | undefined> {
      const stored = await leases.read(uid);
      put(uid, stored);
      return stored;
    },
  };
};

/** Answers those whose key was granted by another request and returns the rest; what is stored is not stored again. */
const withoutReplays = async (
  idempotency: BatchCommitOptions['idempotency'],
  batch: readonly Waiting[],
): Promise<readonly Waiting[]> => {
  const keys = batch.flatMap(({ submission }) => submission.entry?.id ?? []);
  const { remembered, over } = await idempotency.read(keys);
  if (over.length > 0) await idempotency.forget(over);
  return batch.flatMap((waiting) => {
    const { operation, entry: own } = waiting.submission;
    const entry = own && remembered.get(own.id);
    if (!entry) return [waiting];
    if (entry.leaseId === operation.id) return [{ ...waiting, submission: { operation } }];
    waiting.resolve({ kind: 'replay', entry });
    return [];
  });
};

/** Documents on which a commit of this instance met another one. */
const makeContention = ({ clock, metrics }: Pick<BatchCommitOptions, 'clock' | 'metrics'>) => {
  const until = new Map<string, number>();
  const has = (uid: string): boolean => (until.get(uid) ?? Number.NEGATIVE_INFINITY) > clock.monotonic();
  return {
    /** Tells whether it is news. */
    note(uid: string): boolean {
      const isNews = !has(uid);
      metrics.count('lease_commit_conflict');
      until.delete(uid);
      until.set(uid, clock.monotonic() + CONTENDED_MS);
      const [oldest] = until.keys();
      if (oldest !== undefined && until.size > REMEMBERED) until.delete(oldest);
      return isNews;
    },
    has,
  };
};

/** A version to judge, and whether it was read for this batch. */
interface Base {
  readonly stored: StoredLeases | undefined;
  readonly isFresh: boolean;
}

export const makeBatchCommit = (options: BatchCommitOptions): BatchCommit => {
  const { leases, idempotency, time, clock, ids } = options;
  const memory = makeMemory(leases);
  const contention = makeContention(options);

  const read = async (uid: string): Promise<Base> => ({ stored: await memory.read(uid), isFresh: true });

  const start = async (uid: string, seen: StoredLeases | undefined): Promise<Base> => {
    const stored = newest(memory.get(uid), seen);
    return stored && time.age() <= TIME_MAX_AGE_MS ? { stored, isFresh: false } : read(uid);
  };

  /** One try: true when every submission of the batch has its answer, false when memory does not suffice for it. */
  const attempt = async (uid: string, batch: readonly Waiting[], { stored, isFresh }: Base) => {
    if (!stored) {
      settle(batch, () => ({ kind: 'missing' }));
      return true;
    }
    const now = Math.max(time.now(), versionTime(stored.version));
    const { document, outcomes } = judgeAll(stored.document, batch, now);
    if (!isFresh && needsFreshRead(batch, outcomes)) return false;
    if (document !== stored.document) {
      const entries = newEntries(stored.document, batch, outcomes);
      memory.put(uid, await leases.commit(uid, stored, document, entries));
    }
    settle(batch, (index) => {
      const outcome = outcomes[index];
      return outcome && { ...outcome, gate: document.gate };
    });
    return true;
  };

  /** Throws what no other try mends, or what the last one met. */
  const pauseAfter = async (error: unknown, tries: number, started: number): Promise<void> => {
    const isMendable = hasCode(error, 'Conflict', 'Transient', 'NotFound');
    if (!isMendable || clock.monotonic() - started > DEADLINE_MS) throw error;
    await pause(backoff(tries, 5, 250, ids));
  };

  return {
    remembered: memory.get,
    isContended: contention.has,
    async commit(uid, given, seen) {
      const started = clock.monotonic();
      let batch = releasesFirst(given);
      let base: Base | undefined = await start(uid, seen);
      let isIntruding = false;
      for (let tries = 0; batch.length > 0; tries += 1) {
        try {
          // After an error a write may be stored all the same: what is there decides, and keys that were answered.
          if (!base) {
            batch = await withoutReplays(idempotency, batch);
            base = await read(uid);
            if (isIntruding && base.stored) batch = withoutYielding(base.stored.document, batch);
          }
          if (await attempt(uid, batch, base)) return;
          base = await read(uid);
        } catch (error) {
          base = undefined;
          memory.put(uid, undefined);
          isIntruding = hasCode(error, 'Conflict') && contention.note(uid);
          await pauseAfter(error, tries, started);
        }
      }
    },
  };
};
