/** What becomes of changed verdicts: written, told in log and metrics, and passed on to whoever shows them. */

import { errorChain } from '#shared/app/errors.ts';
import type { ProxyRef } from '#shared/domain/proxy.ts';
import type { ProxyRecord, Publication } from '#shared/domain/record.ts';
import type { Verdict } from '#shared/domain/verdict.ts';

import type { Parts } from './parts.ts';
import { METRICS } from './signals.ts';

/** One line and one count per change of state; a new exit address alone is only a line. */
export const reportChange = (
  { log, metrics }: Pick<Parts, 'log' | 'metrics'>,
  ref: ProxyRef,
  { endpoint, verdict: before }: Publication,
  after: Verdict,
): void => {
  const { outcome = 'NotProbed', exitAddress } = after;
  log.info('verdict changed', {
    ...ref,
    endpointId: endpoint.id,
    from: before.state,
    to: after.state,
    outcome,
    exitAddress,
  });
  if (before.state !== after.state) metrics.count(METRICS.verdicts, { to: after.state, outcome });
};

/** The record of a Proxy, where the caller knows it and does not work in its trace already. */
export type Recorded = (uid: string) => Pick<ProxyRecord, 'traceparent'> | undefined;

/**
 * Nudges `provision` for each of these, in the trace of the change that its record is under way with, if there is one.
 * Resolves with those whose nudge could not be published.
 */
export const nudgeAll = async (
  { publisher, log }: Pick<Parts, 'publisher' | 'log'>,
  refs: readonly ProxyRef[],
  recorded: Recorded = () => undefined,
): Promise<readonly ProxyRef[]> => {
  const results = await Promise.allSettled(
    refs.map(({ namespace, name, uid }) => {
      const { traceparent } = recorded(uid) ?? {};
      const nudge = { namespace, name, uid, reason: 'verdict' };
      return publisher.change(traceparent === undefined ? nudge : { ...nudge, traceparent });
    }),
  );
  const failures = results.filter((result) => result.status === 'rejected');
  if (failures.length > 0)
    log.warning('verdict nudges not published', {
      failed: failures.length,
      of: refs.length,
      error: errorChain(failures[0]?.reason),
    });
  return refs.filter((_, index) => results[index]?.status === 'rejected');
};
