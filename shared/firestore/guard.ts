/** Notices a channel to Firestore that hangs: its calls run out of time in a row, and none gets through. */

import type { Clock } from '#shared/app/clock.ts';

import { DeadlineExceeded } from './deadline.ts';

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

/** How long calls have to have failed: many that run at the same time say no more than one. */
export interface Span {
  readonly ms: number;
  readonly clock: Pick<Clock, 'monotonic'>;
}

/**
 * Calls `onStuck` once, when `limit` calls in a row have run out of time, the first of them `span.ms` ago or more. Any other
 * answer shows that the channel works.
 */
export const makeGuard = (limit: number, onStuck: () => void, span?: Span): Guard => {
  let inARow = 0;
  let since = 0;
  let isStuck = false;
  const judge = (): void => {
    const isLongEnough = span === undefined || span.clock.monotonic() - since >= span.ms;
    if (isStuck || inARow < limit || !isLongEnough) return;
    isStuck = true;
    onStuck();
  };
  return {
    succeeded: () => {
      inARow = 0;
    },
    failed: (error) => {
      if (inARow === 0) since = span?.clock.monotonic() ?? 0;
      inARow = ranOutOfTime(error) ? inARow + 1 : 0;
      judge();
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
