/** When a probe may start: while this process keeps up. In a busy one it would measure the queue before it. */

import { setImmediate as nextTurn } from 'node:timers/promises';

import type { Clock } from '#shared/app/clock.ts';

export interface Pace {
  /** Resolves when the process is not behind with its work, for one caller after the other. */
  ready(): Promise<void>;
}

export const noPace: Pace = { ready: () => Promise.resolve() };

/** A turn of the event loop that takes longer has more to do than what a probe in flight needs. Milliseconds. */
const LATE_MS = 2;
/** What keeps a process late for longer than this are not its probes. */
const PATIENCE_MS = 100;

export const makePace = (clock: Clock): Pace => {
  let last = Promise.resolve();
  const calmTurn = async (): Promise<void> => {
    const until = clock.monotonic() + PATIENCE_MS;
    for (;;) {
      const began = clock.monotonic();
      await nextTurn();
      const ended = clock.monotonic();
      if (ended - began < LATE_MS || ended > until) return;
    }
  };
  return {
    ready: () => (last = last.then(calmTurn)),
  };
};
