/**
 * Goal 6: a million grants (`BENCH_GRANTS`) under trouble, and a racy control that the same ledger must catch. It ends after
 * `BENCH_SECONDS`, however few the grants are, and says so.
 */

import type { Bench, Figure } from '../figure.ts';
import { racyControl } from '../leases/racy-control.ts';
import { seeded } from '../leases/random.ts';
import { soak } from '../leases/soak.ts';
import { startWorld } from '../leases/world.ts';

const none = (what: string, value: number): Figure => ({
  goal: 6,
  what,
  value,
  target: { atMost: 0 },
  unit: '',
});

export const bench: Bench = async ({ say, seed }) => {
  const grants = Number(process.env['BENCH_GRANTS'] ?? 1_000_000);
  const seconds = Number(process.env['BENCH_SECONDS'] ?? Number.POSITIVE_INFINITY);
  const world = await startWorld();
  try {
    const fleet = world.fleet();
    const start = performance.now();
    const result = await soak({
      fleet,
      grants,
      maxMs: seconds * 1_000,
      proxies: 12,
      maxLeases: 100,
      instances: 3,
      workers: 384,
      random: seeded(seed),
      say,
    });
    const took = (performance.now() - start) / 1_000;
    say(`${result.grants} grants in ${took.toFixed(0)} s, ${(result.grants / took).toFixed(0)} per second`);
    const caught = await racyControl(fleet, 16);
    say(`${result.kills} kills, ${result.lostReplies} lost replies, ${result.moves} changes of the fleet`);
    return [
      { goal: 6, what: 'grants', value: result.grants, target: { atLeast: grants }, unit: '' },
      none('over-allocations', result.overAllocations),
      none('leases on a withdrawn endpoint', result.onWithdrawn),
      none('slots lost after expiry', result.lostSlots),
      {
        goal: 6,
        what: 'over-allocations of the racy control',
        value: caught,
        target: { atLeast: 1 },
        unit: '',
      },
    ];
  } finally {
    await world.stop();
  }
};
