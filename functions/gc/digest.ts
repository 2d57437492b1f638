import { createHash } from 'node:crypto';

import { identityOf } from './observation.ts';
import type { Judgement } from './orphans.ts';

/** Names exactly these deletions of this installation: 64 hex digits that a person hands back to release them. */
export const digestOf = (installation: string, deletions: readonly Judgement[]): string => {
  const lines = deletions.map((judgement) => {
    const { kind, zone, name, id } = identityOf(judgement);
    return JSON.stringify([judgement.provider, kind, zone, name, id]);
  });
  return createHash('sha256')
    .update([installation, ...lines.sort()].join('\n'))
    .digest('hex');
};
