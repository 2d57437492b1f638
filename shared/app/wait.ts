/** Waiting and retrying, with a signal that ends both. */

import { setTimeout as sleep } from 'node:timers/promises';

import { hasCode, type ErrorCode } from './errors.ts';
import type { Ids } from './ids.ts';

/** Resolves after `ms`, or at once (without error) when `signal` aborts. */
export const pause = async (ms: number, signal?: AbortSignal): Promise<void> => {
  if (signal?.aborted) return;
  await sleep(ms, undefined, signal ? { signal } : {}).catch((error: unknown) => {
    if (!signal?.aborted) throw error;
  });
};

/** Full jitter over a capped exponential: AWS Architecture Blog, "Exponential Backoff And Jitter". Milliseconds. */
export const backoff = (attempt: number, baseMs: number, capMs: number, ids: Ids): number =>
  ids.fraction() * Math.min(capMs, baseMs * 2 ** attempt);

export interface RetryOptions {
  readonly attempts: number;
  readonly baseMs: number;
  readonly capMs: number;
  readonly ids: Ids;
  /** Codes that another attempt may mend; default `Transient`. */
  readonly codes?: readonly ErrorCode[];
  readonly signal?: AbortSignal;
}

/** Runs `work` until it succeeds, throws something that no retry mends, or the attempts are used up. */
export const retry = async <T>(work: () => Promise<T>, options: RetryOptions): Promise<T> => {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      const mendable = hasCode(error, ...(options.codes ?? ['Transient']));
      if (!mendable || attempt + 1 >= options.attempts || options.signal?.aborted) throw error;
      await pause(backoff(attempt, options.baseMs, options.capMs, options.ids), options.signal);
    }
  }
};
