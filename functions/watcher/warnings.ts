/** Events on Proxies that need a person's eye, few enough not to become a flood of their own. */

import type { Clock } from '#shared/app/clock.ts';
import type { ProxyRef } from '#shared/domain/proxy.ts';
import type { Cluster } from '#shared/kubernetes/cluster.ts';

import type { ProxyView } from './decide.ts';

/** A publish that fails once is nothing to report. */
const FAILURES_BEFORE_WARNING = 3;
/** As often, two minutes apart, may a nudge have no effect while a burst is worked off. */
const REPETITIONS_BEFORE_WARNING = 5;
const UNANSWERED_AGAIN_MS = 3_600_000;
const PUBLISH_AGAIN_MS = 300_000;
const OWNER_AGAIN_MS = 3_600_000;
const WINDOW_MS = 60_000;
const PER_WINDOW = 20;

/** Whether a Proxy may be warned about now. Remembers no longer than `againMs`. */
const makeLimit = (againMs: number, clock: Clock) => {
  const warnedAt = new Map<string, number>();
  return (uid: string): boolean => {
    const now = clock.monotonic();
    for (const [key, at] of warnedAt) if (at <= now - againMs) warnedAt.delete(key);
    const recent = [...warnedAt.values()].filter((at) => at > now - WINDOW_MS).length;
    if (warnedAt.has(uid) || recent >= PER_WINDOW) return false;
    warnedAt.set(uid, now);
    return true;
  };
};

type Events = Pick<Cluster, 'recordEvent'>;

/** On Proxies whose nudges cannot be published. */
export const makeWarnings = (cluster: Events, clock: Clock) => {
  const mayWarn = makeLimit(PUBLISH_AGAIN_MS, clock);
  return (ref: ProxyRef, failures: number): void => {
    if (failures < FAILURES_BEFORE_WARNING || !mayWarn(ref.uid)) return;
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

/** On Proxies whose nudges are taken by Pub/Sub and have no effect: provision is not there, or looks at another cluster. */
export const makeUnansweredWarnings = (cluster: Events, installation: string, clock: Clock) => {
  const mayWarn = makeLimit(UNANSWERED_AGAIN_MS, clock);
  return (ref: ProxyRef, repetitions: number): void => {
    if (repetitions < REPETITIONS_BEFORE_WARNING || !mayWarn(ref.uid)) return;
    void cluster.recordEvent(
      { metadata: ref },
      {
        type: 'Warning',
        reason: 'NotDealtWith',
        message:
          `This change was handed on ${repetitions + 1} times, and nothing shows that anybody has dealt with it. See that the ` +
          `functions of installation ${installation} run, and that they look at this cluster. It goes on by itself then; ` +
          'until it does, a deletion waits too.',
      },
    );
  };
};

const ownerMessage = (ours: string, { ref, installation }: ProxyView): string =>
  `The status names installation ${installation}, so installation ${ours}, which has this namespace, leaves this Proxy ` +
  `alone, its deletion too. If ${installation} does not look after it any more, hand it over: ` +
  `kubectl -n ${ref.namespace} patch proxy ${ref.name} --subresource=status --type=merge ` +
  `-p '{"status":{"installation":null}}'`;

/** On Proxies that another installation has, as their status says: nobody may look after them here. */
export const makeOwnerWarnings = (cluster: Events, installation: string, clock: Clock) => {
  const mayWarn = makeLimit(OWNER_AGAIN_MS, clock);
  return (view: ProxyView): void => {
    if (view.installation === undefined || view.installation === installation) return;
    if (!mayWarn(view.ref.uid)) return;
    void cluster.recordEvent(
      { metadata: view.ref },
      { type: 'Warning', reason: 'OtherInstallation', message: ownerMessage(installation, view) },
    );
  };
};
