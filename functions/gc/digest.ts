import { createHash } from 'node:crypto';

import type { Judgement } from './orphans.ts';

/** Names exactly these deletions of this installation: 64 hex digits that a person hands back to release them. */
export const digestOf = (installation: string, deletions: readonly Judgement[]): string => {
  const lines = deletions.map(({ provider, machine }) =>
    JSON.stringify([provider, machine.zone, machine.name, machine.instanceId]),
  );
  return createHash('sha256')
    .update([installation, ...lines.sort()].join('\n'))
    .digest('hex');
};
