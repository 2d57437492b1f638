/** The person who is called when gc freezes: reads the plan, and releases exactly that. */

import { z } from 'zod';

import type { World } from '#test/e2e/world.ts';

const planSchema = z.looseObject({
  digest: z.string(),
  frozen: z.array(z.looseObject({ reason: z.string() })),
});

const post = async ({ installation }: World, query: string): Promise<Response> =>
  fetch(`${installation.deployments.urls.gc}/?${query}`, { method: 'POST' });

/**
 * Has gc look at everything, disks included, which it does by itself once an hour. Resolves with the reasons of a freeze
 * that was released; empty when there was none.
 */
export const releaseFrozen = async (world: World): Promise<readonly string[]> => {
  const plan = planSchema.parse(await (await post(world, 'dryRun=true')).json());
  const answer = await post(world, `confirm=${plan.digest}`);
  await answer.arrayBuffer();
  return plan.frozen.map(({ reason }) => reason);
};
