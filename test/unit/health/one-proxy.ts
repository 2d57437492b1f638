/** Health over one proxy, in memory. */

import { Timestamp } from '@google-cloud/firestore';

import { systemClock } from '#shared/app/clock.ts';
import { systemIds } from '#shared/app/ids.ts';
import { makeLog } from '#shared/app/log.ts';
import { noMetrics } from '#shared/app/metrics.ts';
import { DEFAULT_HEALTH_CHECK } from '#shared/domain/proxy.ts';
import type { ProxyRecord } from '#shared/domain/record.ts';
import type { ProbeOutcome, VerdictState } from '#shared/domain/verdict.ts';

import type { Parts } from '../../../functions/health/parts.ts';
import { parseTarget } from '../../../functions/health/probe/target.ts';
import { NOW, aMachine, aPublication, aRecord, uidOf } from '../gc/builders.ts';

/** A push of `proxy-probes` about it. */
export const probeOf = (reason: string) => ({
  message: {
    data: Buffer.from(JSON.stringify({ uid: uidOf(1), reason })).toString('base64'),
    messageId: '1',
  },
});

/** Health over one record, whose endpoint has this verdict and answers like this. */
export const healthParts = (
  state: VerdictState,
  outcome: ProbeOutcome,
  more: Partial<ProxyRecord> = {},
): Parts => {
  const target = parseTarget('https://echo.example/', 'echo');
  if (!target) throw new TypeError('no target');
  const version = { updateTime: Timestamp.fromMillis(1) };
  const verdict = { state, since: 1, checkedAt: 1 };
  let record = aRecord(1, {
    serving: { ...aPublication(aMachine(1)), verdict },
    healthCheck: { ...DEFAULT_HEALTH_CHECK, failureThreshold: 1 },
    ...more,
  });
  const stored = () => ({ record, version, readTime: NOW });
  const claim = {
    now: NOW,
    state: { flips: [], flipsId: '', massFailures: 0, doubts: [] },
    save: () => Promise.resolve(),
  };
  const prober: Parts['prober'] = {
    // Without a proxy the target is always reached.
    probe: (via) => Promise.resolve({ outcome: via ? outcome : 'Ok' }),
  };
  return {
    installation: record.installation,
    records: {
      read: () => Promise.resolve(stored()),
      write: (next) => {
        record = next;
        return Promise.resolve(version);
      },
      probed: () => Promise.resolve({ records: [stored()], unreadable: [], readTime: NOW }),
    },
    rounds: { claim: () => Promise.resolve(claim) },
    views: { write: () => Promise.resolve(0) },
    credentials: { read: () => Promise.resolve(undefined) },
    publisher: { change: () => Promise.resolve() },
    prober,
    targets: [target],
    shards: 1,
    probesAtOnce: 64,
    clock: systemClock,
    ids: systemIds,
    log: makeLog(() => undefined),
    metrics: noMetrics,
  };
};
