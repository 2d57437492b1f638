/** Verdicts into records: record and gate in one batch, judged anew against whatever is there by then. */

import { SystemError, hasCode } from '#shared/app/errors.ts';
import type { Ids } from '#shared/app/ids.ts';
import { backoff, pause } from '#shared/app/wait.ts';
import type { ProxyRecord } from '#shared/domain/record.ts';
import { applyStreaks, type Streak } from '#shared/domain/verdict-rules.ts';
import type { RecordStore, StoredRecord } from '#shared/firestore/records.ts';

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
