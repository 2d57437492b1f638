/** Events on Proxies whose nudges cannot be published, few enough not to become a flood of their own. */

import type { Clock } from '#shared/app/clock.ts';
import type { ProxyRef } from '#shared/domain/proxy.ts';
import type { Cluster } from '#shared/kubernetes/cluster.ts';

/** A publish that fails once is nothing to report. */
const FAILURES_BEFORE_WARNING = 3;
const PER_PROXY_MS = 300_000;
const WINDOW_MS = 60_000;
const PER_WINDOW = 20;

/** Remembers the last minutes only. */
export const makeWarnings = (cluster: Pick<Cluster, 'recordEvent'>, clock: Clock) => {
  const warnedAt = new Map<string, number>();

  const allowed = (uid: string, now: number): boolean => {
    for (const [key, at] of warnedAt) if (at <= now - PER_PROXY_MS) warnedAt.delete(key);
    const recent = [...warnedAt.values()].filter((at) => at > now - WINDOW_MS).length;
    return !warnedAt.has(uid) && recent < PER_WINDOW;
  };

  return (ref: ProxyRef, failures: number): void => {
    const now = clock.now();
    if (failures < FAILURES_BEFORE_WARNING || !allowed(ref.uid, now)) return;
    warnedAt.set(ref.uid, now);
    void cluster.recordEvent(
      { metadata: ref },
      {
        type: 'Warning',
        reason: 'PublishFailed',
        message: 'This change cannot be handed on, since Pub/Sub does not take messages. It is retried.',
      },
    );
  };
};
