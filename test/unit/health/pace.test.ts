import { setImmediate as nextTurn } from 'node:timers/promises';

import { describe, expect, it } from 'vitest';

import { makePace } from '../../../functions/health/pace.ts';
import { makePool } from '../../../functions/health/pool.ts';

/** A clock on which each turn of the event loop takes as long as the next of `turns`; then none takes any time. */
const clockOf = (turns: readonly number[]) => {
  let now = 0;
  let looks = 0;
  const left = [...turns];
  return {
    looks: () => looks,
    clock: {
      now: () => 0,
      monotonic: () => {
        looks += 1;
        // Asked once before all, then before and after each turn.
        if (looks > 1 && looks % 2 === 1) now += left.shift() ?? 0;
        return now;
      },
    },
  };
};

describe('the pace of probes', () => {
  it('is held while turns of the event loop take long', async () => {
    const { clock, looks } = clockOf([30, 20, 1]);
    await makePace(clock).ready();
    expect(looks()).toBe(1 + 3 * 2);
  });

  it('is not held for ever by what probes do not cause', async () => {
    const { clock, looks } = clockOf([60, 60, 60, 60]);
    await makePace(clock).ready();
    expect(looks()).toBe(1 + 2 * 2);
  });

  it('lets one start after the other, each after a turn of its own', async () => {
    const pool = makePool(8, makePace({ now: () => 0, monotonic: () => 0 }));
    const started: number[] = [];
    const starts = Array.from({ length: 3 }, async (_, number) => {
      await pool.acquire();
      started.push(number);
    });
    const seen: number[] = [];
    while (seen.at(-1) !== starts.length) {
      await nextTurn();
      seen.push(started.length);
    }
    await Promise.all(starts);
    expect(Math.max(...seen.map((count, index) => count - (seen[index - 1] ?? 0)))).toBe(1);
  });
});
