/** What becomes of an acquire whose commit met another instance's: where it may, it leaves the proxy to that one. */

import { hasLease } from '#shared/domain/lease-rules.ts';
import type { LeaseDocument } from '#shared/domain/lease.ts';

import type { Waiting } from './commit-batch.ts';

/**
 * Answers `contended` to those that may go elsewhere and have not been stored after all; returns the rest. So of two
 * instances that begin to use one proxy the first one keeps it, and it is not disturbed by the other's releases either.
 */
export const withoutYielding = (document: LeaseDocument, batch: readonly Waiting[]): readonly Waiting[] =>
  batch.filter(({ submission: { operation, mayYield }, resolve }) => {
    const yields = mayYield === true && operation.kind === 'acquire' && !hasLease(document, operation.id);
    if (yields) resolve({ kind: 'contended' });
    return !yields;
  });
