/** A limit on one call, the library's own retries included: a hanging channel must not hold a request for a minute. */

import { SystemError } from '#shared/app/errors.ts';

export const CALL_DEADLINE_MS = 10_000;

/** For a query that reads a whole fleet. */
export const SCAN_DEADLINE_MS = 20_000;

/** A call that did not answer in time. Many in a row mean that the channel hangs, which no retry mends. */
export class DeadlineExceeded extends SystemError {
  constructor(message: string) {
    super('Transient', message);
  }
}

/** Throws `DeadlineExceeded` (`Transient`) after `ms`; the call itself goes on, so a write may still be stored. */
export const withDeadline = async <T>(
  what: string,
  call: () => Promise<T>,
  ms: number = CALL_DEADLINE_MS,
): Promise<T> => {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => reject(new DeadlineExceeded(`Firestore: ${what} took longer than ${ms} ms`)),
    ms,
  );
  try {
    return await Promise.race([call(), late]);
  } finally {
    clearTimeout(timer);
  }
};
