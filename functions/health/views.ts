/** Keeps the views of a shard up to date with what a round reads anyway. */

import type { Selection } from '#shared/firestore/records.ts';

import type { Parts } from './parts.ts';

/** A failure is logged and no more: readers get along without views, and the next round tries again. */
export const showViews = async (
  selection: Selection,
  shard: string,
  { views, installation, shards, log }: Pick<Parts, 'views' | 'installation' | 'shards' | 'log'>,
): Promise<void> => {
  try {
    await views.write({ installation, shard, shards }, selection);
  } catch (error) {
    log.error('views not written', error, { shard });
  }
};
