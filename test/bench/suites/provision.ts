/** Goals 14, 15 and 17: what provisioning costs. `BENCH_PARTS=waiting,shuffle` measures only these. */

import type { Bench, BenchContext, Figure } from '../figure.ts';
import { measureParts, type Part, type Parts } from '../parts.ts';
import { measureShuffles } from '../provision/all-shuffles.ts';
import { measureCounts } from '../provision/counts.ts';
import { measureEndToEnd } from '../provision/end-to-end.ts';
import { measureThousand } from '../provision/thousand.ts';
import { measureWaiting } from '../provision/waiting.ts';
import { startProvisionWorld, type ProvisionWorld, type WorldOptions } from '../provision/world.ts';

const inWorld =
  (
    options: WorldOptions,
    measure: (world: ProvisionWorld, context: BenchContext) => Promise<readonly Figure[]>,
  ): Part<undefined> =>
  async (_, context) => {
    const world = await startProvisionWorld(options);
    try {
      return await measure(world, context);
    } finally {
      await world.stop();
    }
  };

const PARTS: Parts<undefined> = {
  shuffle: inWorld({ operationMs: 60, bootMs: 20, ranges: 3, maxReplacingPercent: 100 }, measureShuffles),
  counts: inWorld({ operationMs: 100, bootMs: 50, ranges: 1, maxReplacingPercent: 100 }, measureCounts),
  waiting: inWorld({ operationMs: 100, bootMs: 50, ranges: 2 }, (world, { say }) =>
    measureWaiting(world, say),
  ),
  endToEnd: (_, context) => measureEndToEnd(context),
  thousand: inWorld({ operationMs: 100, bootMs: 50, ranges: 9 }, measureThousand),
};

export const bench: Bench = (context) => measureParts(PARTS, undefined, context);
