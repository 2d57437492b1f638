/** Goal 14 as a whole: all 720 orders, each with duplicates, with either ending. */

import { seeded } from '#test/chaos/random.ts';

import type { BenchContext, Figure } from '../figure.ts';
import { duplicated, permutations, runShuffle, type Shuffle, type ShuffleWorld } from './shuffle.ts';
import type { ProvisionWorld } from './world.ts';

const AT_ONCE = 40;
const ENDINGS = ['cordoned', 'deleted'] as const;

export const measureShuffles = async (
  world: ProvisionWorld,
  { seed, say }: BenchContext,
): Promise<readonly Figure[]> => {
  const random = seeded(seed);
  const shuffled: ShuffleWorld = { ...world, control: world.compute.control };
  const limit = Number(process.env['BENCH_ORDERS'] ?? 720);
  const orders = random.shuffled(permutations(6)).slice(0, limit);
  const all: readonly Shuffle[] = orders.flatMap((order, index) =>
    ENDINGS.map((ending) => ({
      deliveries: duplicated(order, random),
      concurrent: (index + ENDINGS.indexOf(ending)) % 2 === 0,
      ending,
    })),
  );
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
      if (found) wrong.push(found);
      if (index % 100 === 99) say(`${index + 1} of ${all.length}, ${wrong.length} wrong`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  for (const line of wrong.slice(0, 20)) say(`! ${line}`);
  return [
    {
      goal: 14,
      what: 'orders, each with duplicates and two endings',
      value: all.length,
      target: { atLeast: 1440 },
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
