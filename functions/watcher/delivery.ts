/** Publishing one nudge, and when to try again after it failed: per Proxy, so that none waits for another. */

import type { Clock } from '#shared/app/clock.ts';
import type { Ids } from '#shared/app/ids.ts';
import type { Log } from '#shared/app/log.ts';
import type { Metrics } from '#shared/app/metrics.ts';
import { noTracing, type Tracing } from '#shared/app/tracing.ts';
import { backoff } from '#shared/app/wait.ts';
import { SystemError } from '#shared/app/errors.ts';
import type { ChangeMessage } from '#shared/domain/message.ts';
import type { ProxyRef } from '#shared/domain/proxy.ts';

export interface DeliveryPorts {
  readonly publish: (message: ChangeMessage) => Promise<void>;
  /** Called after each failed publish of a Proxy, with how many there were in a row. */
  readonly onFailure: (ref: ProxyRef, failures: number) => void;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly tracing?: Tracing;
  /** A publish that did not end by then has failed. Milliseconds, default 20,000: longer than the client itself tries. */
  readonly publishWithinMs?: number;
}

export interface Nudge {
  readonly ref: ProxyRef;
  readonly reason: string;
  /** `traceparent` of an earlier nudge for the same; absent = this is news, and a trace begins. */
  readonly parent?: string | undefined;
}

export interface Delivered {
  readonly stored: boolean;
  readonly traceparent: string | undefined;
}

const PUBLISH_WITHIN_MS = 20_000;
const RETRY_MIN_MS = 500;
const RETRY_BASE_MS = 1000;
const RETRY_CAP_MS = 30_000;

/** One that hangs must not keep its place in the queue for ever. Stored after all, it is a duplicate, which harms nobody. */
const endsWithin = async (ms: number, published: Promise<void>): Promise<void> => {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const giveUp = () => reject(new SystemError('Transient', `Pub/Sub: a publish did not end within ${ms} ms`));
  const timer = setTimeout(giveUp, ms);
  try {
    await Promise.race([published, late]);
  } finally {
    clearTimeout(timer);
  }
};

export type Delivery = ReturnType<typeof makeDelivery>;

export const makeDelivery = (ports: DeliveryPorts) => {
  const { tracing = noTracing, publishWithinMs = PUBLISH_WITHIN_MS } = ports;
  const failing = new Map<string, { readonly count: number; readonly retryAt: number }>();

  const failed = (ref: ProxyRef, error: unknown): void => {
    const count = (failing.get(ref.uid)?.count ?? 0) + 1;
    const wait = RETRY_MIN_MS + backoff(count, RETRY_BASE_MS, RETRY_CAP_MS, ports.ids);
    failing.set(ref.uid, { count, retryAt: ports.clock.monotonic() + wait });
    ports.metrics.count('watcher_publish_failures');
    ports.log.error('a nudge could not be published', error, { ...ref, failures: count });
    ports.onFailure(ref, count);
  };

  const publish = async (ref: ProxyRef, reason: string): Promise<boolean> => {
    try {
      await endsWithin(publishWithinMs, ports.publish({ ...ref, reason }));
    } catch (error) {
      failed(ref, error);
      return false;
    }
    failing.delete(ref.uid);
    ports.metrics.count('watcher_nudges', { reason });
    ports.log.info('nudged', { ...ref, reason });
    return true;
  };

  return {
    /** Never throws. `traceparent`: of the span in which it was published. */
    deliver: ({ ref, reason, parent }: Nudge): Promise<Delivered> =>
      tracing.span('watcher.nudge', { parent, attributes: { ...ref, reason } }, async () => ({
        stored: await publish(ref, reason),
        traceparent: tracing.traceparent(),
      })),
    /** Not before this (monotonic ms); undefined when the last publish succeeded. */
    retryAt: (uid: string): number | undefined => failing.get(uid)?.retryAt,
    forget: (uid: string): void => {
      failing.delete(uid);
    },
  };
};
