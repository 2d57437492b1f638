/** Notices a channel to Firestore that hangs: its calls run out of time in a row, and none gets through. */

import { DeadlineExceeded } from '#shared/firestore/deadline.ts';

/** So many in a row mean that the channel hangs. */
export const STUCK_CALLS = 5;

/** gRPC's own code for a call that ran out of time. */
const DEADLINE_EXCEEDED = 4;

const ranOutOfTime = (error: unknown): boolean => {
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof DeadlineExceeded) return true;
    if ('code' in cause && cause.code === DEADLINE_EXCEEDED) return true;
  }
  return false;
};

export interface Guard {
  succeeded(): void;
  failed(error: unknown): void;
}

/** Calls `onStuck` once, when `limit` calls in a row have run out of time. Any other answer shows that the channel works. */
export const makeGuard = (limit: number, onStuck: () => void): Guard => {
  let inARow = 0;
  return {
    succeeded: () => {
      inARow = 0;
    },
    failed: (error) => {
      inARow = ranOutOfTime(error) ? inARow + 1 : 0;
      if (inARow === limit) onStuck();
    },
  };
};

/** The same store, with every call of its methods watched. */
export const guarded = <S extends object>(store: S, guard: Guard): S =>
  new Proxy(store, {
    get(target, key, receiver) {
      const member: unknown = Reflect.get(target, key, receiver);
      if (typeof member !== 'function') return member;
      return async (...given: readonly unknown[]): Promise<unknown> => {
        try {
          const result: unknown = await Reflect.apply(member, target, given);
          guard.succeeded();
          return result;
        } catch (error) {
          guard.failed(error);
          throw error;
        }
      };
    },
  });
