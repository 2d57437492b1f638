/** Verdicts into records: record and gate in one batch, judged anew against whatever is there by then. */

import type { Clock } from '#shared/app/clock.ts';
import { SystemError, hasCode } from '#shared/app/errors.ts';
import type { Ids } from '#shared/app/ids.ts';
import { backoff, pause } from '#shared/app/wait.ts';
import type { ProxyRecord } from '#shared/domain/record.ts';
import { applyStreaks, type Streak } from '#shared/domain/verdict-rules.ts';
import type { RecordStore, StoredRecord } from '#shared/firestore/records.ts';

import type { Finding } from './decide.ts';
import { reportChange } from './flips.ts';
import type { Parts } from './parts.ts';
import { makePool } from './pool.ts';
import { METRICS } from './signals.ts';

export interface CommitParts {
  readonly records: Pick<RecordStore, 'read' | 'write'>;
  readonly ids: Ids;
}

const ATTEMPTS = 6;

/**
 * Writes what these streaks lead to, if that is news. Resolves with the record as it now stands, `undefined` when there is
 * none any more. Throws `Transient`, also when others kept writing in between.
 */
export const commitStreaks = async (
  { records, ids }: CommitParts,
  stored: StoredRecord,
  streaks: readonly Streak[],
  now: () => number,
): Promise<ProxyRecord | undefined> => {
  const { uid } = stored.record.ref;
  let current: StoredRecord | undefined = stored;
  for (let attempt = 0; attempt < ATTEMPTS && current; attempt += 1) {
    const next = applyStreaks(current.record, streaks, now());
    if (next === current.record) return next;
    try {
      await records.write(next, current.version);
      return next;
    } catch (error) {
      if (!hasCode(error, 'Conflict', 'NotFound')) throw error;
    }
    await pause(backoff(attempt, 20, 500, ids));
    current = await records.read(uid);
  }
  if (!current) return undefined;
  throw new SystemError('Transient', `record ${uid} kept changing while its verdict was written`);
};

const COMMITS_AT_ONCE = 32;

export interface Commits {
  readonly changes: ReadonlyMap<string, readonly Finding[]>;
  readonly stored: ReadonlyMap<string, StoredRecord>;
  readonly now: () => number;
  /** Milliseconds of the monotonic clock; what has not begun by then is left to the next round. */
  readonly until: number;
}

type CommitAllParts = CommitParts & Pick<Parts, 'log' | 'metrics'> & { readonly clock: Clock };

const commitOne = async (
  parts: CommitAllParts,
  uid: string,
  findings: readonly Finding[],
  { stored, now, until }: Commits,
): Promise<boolean> => {
  try {
    if (parts.clock.monotonic() > until) throw new SystemError('Transient', 'the round had no time left');
    const before = stored.get(uid);
    const streaks = findings.map(({ streak }) => streak);
    if (!before || !(await commitStreaks(parts, before, streaks, now))) return true;
    for (const { task, verdict } of findings) reportChange(parts, task.ref, task.publication, verdict);
    return true;
  } catch (error) {
    // One that fails keeps no other from being written.
    parts.log.error('verdict not written', error, { uid });
    return false;
  }
};

/** Writes what has changed, many at once. Resolves with how many could not be written. */
export const commitAll = async (parts: CommitAllParts, commits: Commits): Promise<number> => {
  const pool = makePool(COMMITS_AT_ONCE);
  const written = await Promise.all(
    [...commits.changes].map(async ([uid, findings]) => {
      const slot = await pool.acquire();
      try {
        return await commitOne(parts, uid, findings, commits);
      } finally {
        slot.release();
      }
    }),
  );
  const failed = written.filter((done) => !done).length;
  if (failed > 0) parts.metrics.count(METRICS.unwritten, {}, failed);
  return failed;
};
