/** Looks after the operations of one zone for everybody who waits for one of them. */

import type { Clock } from '#shared/app/clock.ts';
import { errorChain, hasCode } from '#shared/app/errors.ts';
import type { Log } from '#shared/app/log.ts';
import { pause } from '#shared/app/wait.ts';
import type { OperationRef, OperationResult } from '#shared/domain/machine.ts';

import { resultOf, type Operation } from './operation.ts';

export interface OperationSource {
  /** The newest operations of a zone, at most `limit`. */
  listOperations(zone: string, limit: number): Promise<readonly Operation[]>;
  /** Undefined for a plain "not found". */
  getOperation(operation: OperationRef): Promise<Operation | undefined>;
}

export interface Waiter {
  readonly operation: OperationRef;
  /** Rounds in a row in which the list did not show the operation. */
  unlisted: number;
  resolve(result: OperationResult): void;
  reject(error: unknown): void;
}

export interface ZoneWatch {
  add(waiter: Waiter): void;
  remove(waiter: Waiter): void;
  waiters(): readonly Waiter[];
}

export interface PollTiming {
  /** Least time from the end of one list of a zone to the next. */
  readonly intervalMs: number;
  /** Most time between two, however long the operations take. */
  readonly longestIntervalMs: number;
  /** From the first waiter to the first list: hardly any operation is done sooner. */
  readonly firstLookMs: number;
  readonly longestBackoffMs: number;
}

export const POLL_TIMING: PollTiming = {
  intervalMs: 1_000,
  longestIntervalMs: 4_000,
  firstLookMs: 200,
  longestBackoffMs: 15_000,
};

/** What has taken long takes longer: the next look comes after an eighth of the time waited so far, so it is late by no more. */
const LOOKS_PER_AGE = 8;

/** A list shows the newest operations of everybody in the zone, so it is longer than the number of ours. */
const MIN_LISTED = 100;
const MAX_LISTED = 500;
/** An unlisted operation is asked for in its first and then every fifth round, at most ten in one round. */
const ROUNDS_PER_GET = 5;
const GETS_PER_ROUND = 10;

/** Errors that no later try mends. */
const isHopeless = (error: unknown): boolean =>
  hasCode(error, 'Unauthorised', 'NotConfigured', 'InvalidSpec');

const settle = (waiter: Waiter, operation: Operation | undefined): void => {
  const result: OperationResult = operation ? resultOf(operation) : { kind: 'unknown' };
  if (result.kind !== 'running') waiter.resolve(result);
};

/** The waiters whose operation is to be asked for by itself now. */
const dueForGet = (unlisted: readonly Waiter[]): readonly Waiter[] => {
  for (const waiter of unlisted) waiter.unlisted += 1;
  const due = unlisted.filter((waiter) => waiter.unlisted % ROUNDS_PER_GET === 1);
  for (const late of due.slice(GETS_PER_ROUND)) late.unlisted = 0;
  return due.slice(0, GETS_PER_ROUND);
};

/** One list for all, then single reads for what it did not show. */
const look = async (source: OperationSource, zone: string, waiters: readonly Waiter[]): Promise<void> => {
  const limit = Math.min(MAX_LISTED, Math.max(MIN_LISTED, waiters.length * 4));
  const found = await source.listOperations(zone, limit);
  const listed = new Map(found.map((operation) => [operation.name ?? '', operation]));
  const unlisted: Waiter[] = [];
  for (const waiter of waiters) {
    const operation = listed.get(waiter.operation.name);
    if (operation) settle(waiter, operation);
    else unlisted.push(waiter);
  }
  await Promise.all(
    dueForGet(unlisted).map(async (waiter) => settle(waiter, await source.getOperation(waiter.operation))),
  );
};

/** When a zone is to be listed, that was last listed at `listedAt`, for whoever waits there since `youngest`. Monotonic times. */
const dueAt = (listedAt: number, youngest: number, now: number, timing: PollTiming): number => {
  const wanted = Math.max(timing.intervalMs, (now - youngest) / LOOKS_PER_AGE);
  return Math.max(listedAt + Math.min(timing.longestIntervalMs, wanted), youngest + timing.firstLookMs);
};

/** Lists at most once a second while somebody waits, less often where all have waited long, and then not at all. */
export const makeZoneWatch = (
  source: OperationSource,
  zone: string,
  clock: Clock,
  log: Log,
  timing: PollTiming,
): ZoneWatch => {
  /** With the monotonic time since when. */
  const waiting = new Map<Waiter, number>();
  /** Monotonic times: when the last list was asked for or came, and before which there is no other. */
  let listedAt = Number.NEGATIVE_INFINITY;
  let notBefore = Number.NEGATIVE_INFINITY;
  let failures = 0;
  /** Ends the running loop; undefined while none runs. */
  let loop: AbortController | undefined;

  const round = async (): Promise<void> => {
    // A loop that begins while this one ends must not list beside it.
    listedAt = clock.monotonic();
    try {
      await look(source, zone, [...waiting.keys()]);
      failures = 0;
    } catch (error) {
      if (isHopeless(error)) {
        for (const waiter of waiting.keys()) waiter.reject(error);
        return;
      }
      failures += 1;
      const delay = Math.min(timing.longestBackoffMs, timing.intervalMs * 2 ** failures);
      notBefore = clock.monotonic() + delay;
      log.warning('operations cannot be listed; waiting goes on', {
        zone,
        retryInMs: delay,
        error: errorChain(error),
      });
    } finally {
      listedAt = clock.monotonic();
    }
  };

  const run = async (signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      const now = clock.monotonic();
      const youngest = Math.max(...waiting.values());
      const left = Math.max(notBefore, dueAt(listedAt, youngest, now, timing)) - now;
      // In pieces: who comes meanwhile is to be looked after sooner.
      if (left > 0) await pause(Math.min(left, timing.intervalMs), signal);
      else await round();
    }
  };

  return {
    add: (waiter) => {
      waiting.set(waiter, clock.monotonic());
      if (loop) return;
      loop = new AbortController();
      void run(loop.signal);
    },
    remove: (waiter) => {
      waiting.delete(waiter);
      if (waiting.size > 0) return;
      loop?.abort();
      loop = undefined;
    },
    waiters: () => [...waiting.keys()],
  };
};
