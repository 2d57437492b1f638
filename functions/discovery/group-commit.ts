/** One commit in flight per lease document: what arrives meanwhile shares the next one. */

import { setImmediate as nextTurn } from 'node:timers/promises';

import { newest, type StoredLeases } from '#shared/firestore/leases.ts';

import {
  makeBatchCommit,
  type BatchCommitOptions,
  type Submission,
  type SubmissionOutcome,
  type Waiting,
} from './commit-batch.ts';

export interface Known {
  /** The newest version. */
  readonly stored: StoredLeases | undefined;
  /** Acquires that are on their way. */
  readonly acquiring: number;
  /** Somebody else wrote to the document while this instance did, a short while ago. */
  readonly isContended: boolean;
}

export interface GroupCommit {
  /** `seen` is a version that the caller happens to have; a newer one than the remembered one saves a read. */
  submit(uid: string, submission: Submission, seen?: StoredLeases): Promise<SubmissionOutcome>;
  /** What this instance knows without asking. */
  known(uid: string): Known;
}

/** Operations in one commit, each with at most one document of its own beside the shared one. */
const BATCH = 200;

/** Kept only while there is something to do. */
interface Queue {
  readonly waiting: Waiting[];
  seen: StoredLeases | undefined;
  acquiring: number;
}

export const makeGroupCommit = (options: BatchCommitOptions): GroupCommit => {
  const batches = makeBatchCommit(options);
  const queues = new Map<string, Queue>();

  const drain = async (uid: string, queue: Queue): Promise<void> => {
    while (queue.waiting.length > 0) {
      const batch = queue.waiting.splice(0, BATCH);
      try {
        await batches.commit(uid, batch, queue.seen);
      } catch (error) {
        for (const waiting of batch) waiting.reject(error);
      }
      // Who was answered and asks again at once rides on the very next commit, together with who waits already.
      if (batch.length + queue.waiting.length > 1) await nextTurn();
    }
    queues.delete(uid);
  };

  const enqueue = (uid: string, waiting: Waiting, seen: StoredLeases | undefined): Queue => {
    const running = queues.get(uid);
    const queue = running ?? { waiting: [], seen: undefined, acquiring: 0 };
    queue.waiting.push(waiting);
    queue.seen = newest(queue.seen, seen);
    if (!running) {
      queues.set(uid, queue);
      void drain(uid, queue);
    }
    return queue;
  };

  return {
    async submit(uid, submission, seen) {
      const { promise, resolve, reject } = Promise.withResolvers<SubmissionOutcome>();
      const queue = enqueue(uid, { submission, resolve, reject }, seen);
      const weight = submission.operation.kind === 'acquire' ? 1 : 0;
      queue.acquiring += weight;
      try {
        return await promise;
      } finally {
        queue.acquiring -= weight;
      }
    },
    known: (uid) => ({
      stored: batches.remembered(uid),
      acquiring: queues.get(uid)?.acquiring ?? 0,
      isContended: batches.isContended(uid),
    }),
  };
};
