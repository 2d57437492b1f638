/**
 * Waiting for operations. However many wait, a zone is listed at most once a second, and not at all when nobody waits;
 * an operation that the list does not show is asked for by itself.
 */

import type { Clock } from '#shared/app/clock.ts';
import type { Log } from '#shared/app/log.ts';
import type { OperationRef, OperationResult } from '#shared/domain/machine.ts';

import {
  makeZoneWatch,
  POLL_TIMING,
  type OperationSource,
  type PollTiming,
  type Waiter,
  type ZoneWatch,
} from './zone-watch.ts';

export interface OperationPoller {
  /** Resolves with the operation's end, or with `running` as soon as `signal` aborts. */
  wait(operation: OperationRef, signal: AbortSignal): Promise<OperationResult>;
  /** Ends all waiting: what is open is `running`. */
  close(): void;
}

const RUNNING: OperationResult = { kind: 'running' };

const waitIn = (watch: ZoneWatch, operation: OperationRef, signal: AbortSignal): Promise<OperationResult> =>
  new Promise((resolve, reject) => {
    const giveUp = (): void => waiter.resolve(RUNNING);
    const end = (): void => {
      signal.removeEventListener('abort', giveUp);
      watch.remove(waiter);
    };
    const waiter: Waiter = {
      operation,
      unlisted: 0,
      resolve: (result) => {
        end();
        resolve(result);
      },
      reject: (error) => {
        end();
        reject(error);
      },
    };
    signal.addEventListener('abort', giveUp, { once: true });
    watch.add(waiter);
  });

export const makeOperationPoller = (
  source: OperationSource,
  clock: Clock,
  log: Log,
  timing: PollTiming = POLL_TIMING,
): OperationPoller => {
  const zones = new Map<string, ZoneWatch>();
  let closed = false;
  const watchOf = (zone: string): ZoneWatch => {
    const watch = zones.get(zone) ?? makeZoneWatch(source, zone, clock, log, timing);
    zones.set(zone, watch);
    return watch;
  };
  return {
    wait: async (operation, signal) =>
      closed || signal.aborted ? RUNNING : waitIn(watchOf(operation.zone), operation, signal),
    close: () => {
      closed = true;
      for (const watch of zones.values()) {
        for (const waiter of watch.waiters()) waiter.resolve(RUNNING);
      }
    },
  };
};
