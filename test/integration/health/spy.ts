/** Counts what a Firestore client sends: documents written, and calls by method. */

import type { Firestore } from '@google-cloud/firestore';

export interface Spy {
  /** Documents in commits so far. */
  writes(): number;
  /** Names of methods that were called, each time. */
  calls(): readonly string[];
  reset(): void;
}

const writesIn = (request: unknown): number =>
  typeof request === 'object' && request !== null && 'writes' in request && Array.isArray(request.writes)
    ? request.writes.length
    : 0;

/** Every call of this client goes through `request` or `requestStream`; both are watched from now on. */
export const spyOn = (db: Firestore): Spy => {
  let writes = 0;
  let calls: string[] = [];
  const watch = (method: 'request' | 'requestStream', requestAt: number): void => {
    const original: unknown = Reflect.get(db, method);
    if (typeof original !== 'function') throw new TypeError(`the client has no ${method}`);
    const watched = (...given: readonly unknown[]): unknown => {
      calls.push(String(given[0]));
      writes += writesIn(given[requestAt]);
      return Reflect.apply(original, db, given);
    };
    Object.defineProperty(db, method, { value: watched, configurable: true });
  };
  watch('request', 1);
  watch('requestStream', 2);
  return {
    writes: () => writes,
    calls: () => calls,
    reset: () => {
      writes = 0;
      calls = [];
    },
  };
};
