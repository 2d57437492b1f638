/** Firestore's clock, as far as an instance can know it without asking: no other clock judges leases. */

import type { Timestamp } from '@google-cloud/firestore';

import type { Clock } from '#shared/app/clock.ts';

export interface ServerTime {
  /** Takes a server time that a reply carried. */
  observe(time: Timestamp): void;
  /** A lower bound of the server's clock: server milliseconds, 0 before the first reply. */
  now(): number;
  /** Milliseconds since the last reply; Infinity before the first. */
  age(): number;
}

/** A reply's time plus what has passed here since can only be behind the server, never ahead. The largest one is kept. */
export const serverTime = (clock: Pick<Clock, 'monotonic'>): ServerTime => {
  let base: { readonly server: number; readonly local: number } | undefined;
  let heardAt = Number.NEGATIVE_INFINITY;
  const now = (): number => (base ? base.server + (clock.monotonic() - base.local) : 0);
  return {
    observe(time) {
      const local = clock.monotonic();
      const server = time.seconds * 1_000 + time.nanoseconds / 1e6;
      if (server >= now()) base = { server, local };
      heardAt = local;
    },
    now: () => Math.floor(now()),
    age: () => clock.monotonic() - heardAt,
  };
};
