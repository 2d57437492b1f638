/** Goal 14 as a whole: all 720 orders, each with duplicates, with one ending or the other. */

import { seeded } from '#test/chaos/random.ts';

import type { BenchContext, Figure } from '../figure.ts';
import { duplicated, permutations, runShuffle, type Shuffle, type ShuffleWorld } from './shuffle.ts';
import type { ProvisionWorld } from './world.ts';

const AT_ONCE = 24;

export const measureShuffles = async (
  world: ProvisionWorld,
  { seed, say }: BenchContext,
): Promise<readonly Figure[]> => {
  const random = seeded(seed);
  const shuffled: ShuffleWorld = { ...world, control: world.compute.control };
  const limit = Number(process.env['BENCH_ORDERS'] ?? 720);
  const orders = random.shuffled(permutations(6)).slice(0, limit);
  const all: readonly Shuffle[] = orders.map((order, index) => ({
    deliveries: duplicated(order, random),
    concurrent: index % 2 === 0,
    ending: index % 4 < 2 ? 'cordoned' : 'deleted',
  }));
  const wrong: string[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (;;) {
      const index = next;
      next += 1;
      const shuffle = all[index];
      if (!shuffle) return;
      const found = await runShuffle(shuffled, `shuffle-${index}`, shuffle).catch(
        (error: unknown) => `${shuffle.deliveries.join(' ')}: ${String(error)}`,
      );
      if (found) {
        wrong.push(found);
        say(`! ${found}`);
      }
      if (index % 100 === 99) say(`${index + 1} of ${all.length}, ${wrong.length} wrong`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return [
    {
      goal: 14,
      what: 'orders, each with duplicates',
      value: all.length,
      target: { atLeast: 720 },
      unit: '',
    },
    {
      goal: 14,
      what: 'orders that ended otherwise, or with another count of create calls',
      value: wrong.length,
      target: { atMost: 0 },
      unit: '',
    },
  ];
};
