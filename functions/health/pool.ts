/** How many probes may be in flight at once. */

import { noPace, type Pace } from './pace.ts';

export interface Slot {
  /** Gives the slot back; a second call does nothing. */
  release(): void;
}

export interface Pool {
  acquire(): Promise<Slot>;
  /** `undefined` when all are taken. */
  tryAcquire(): Slot | undefined;
}

/** `pace` = slots that are waited for are given only as it allows. */
export const makePool = (size: number, pace: Pace = noPace): Pool => {
  let free = size;
  const waiting: ((slot: Slot) => void)[] = [];
  const makeSlot = (): Slot => {
    let held = true;
    return {
      release() {
        if (!held) return;
        held = false;
        const next = waiting.shift();
        if (next) next(makeSlot());
        else free += 1;
      },
    };
  };
  const tryAcquire = (): Slot | undefined => {
    if (free === 0) return undefined;
    free -= 1;
    return makeSlot();
  };
  return {
    tryAcquire,
    acquire: async () => {
      const slot = tryAcquire() ?? (await new Promise<Slot>((resolve) => waiting.push(resolve)));
      await pace.ready();
      return slot;
    },
  };
};

/**
 * Runs `work` in a slot of `pool`. When it is not done after `patienceMs` it moves to `overflow`, if there is room, so that
 * what hangs does not hold up what answers.
 */
export const inPool = async <T>(
  pool: Pool,
  overflow: Pool,
  patienceMs: number,
  work: () => Promise<T>,
): Promise<T> => {
  let slot = await pool.acquire();
  const timer = setTimeout(() => {
    const other = pool === overflow ? undefined : overflow.tryAcquire();
    if (!other) return;
    slot.release();
    slot = other;
  }, patienceMs);
  try {
    return await work();
  } finally {
    clearTimeout(timer);
    slot.release();
  }
};
