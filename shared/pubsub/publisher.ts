/** The only way to Pub/Sub. Messages are nudges; consumers read the truth themselves. */

import { PubSub, type Topic } from '@google-cloud/pubsub';

import { SystemError } from '#shared/app/errors.ts';
import { TRACEPARENT_ATTRIBUTE, type ChangeMessage, type ProbeMessage } from '#shared/domain/message.ts';

export interface PublisherOptions {
  readonly projectId: string;
  readonly changesTopic: string;
  /** Default `proxy-probes`. */
  readonly probesTopic?: string;
  /** How long one publish may take, retries of the library included. Milliseconds, default 10,000. */
  readonly deadlineMs?: number;
  /** `traceparent` of the span that the caller runs in. Default: none. */
  readonly traceparent?: () => string | undefined;
}

export interface Publisher {
  /** Ordered by `key`, usually the uid. Resolves when stored; throws `Transient` else, and the key takes further messages at once. */
  change(message: ChangeMessage, key?: string): Promise<void>;
  /** Unordered. Throws `Transient`. */
  probe(message: ProbeMessage): Promise<void>;
  /** Sends what is pending, then closes the connection. */
  close(): Promise<void>;
}

const BATCH_WAIT_MS = 5;

/** gRPC would wait up to two minutes before it connects again after an outage. */
const CHANNEL = { 'grpc.max_reconnect_backoff_ms': 5000 };

/** Codes 4, 8, 10, 13 and 14 (google.rpc.Code) pass by themselves; the rest is the caller's to see at once. */
const gaxOptions = (deadlineMs: number) => ({
  retry: {
    retryCodes: [4, 8, 10, 13, 14],
    backoffSettings: {
      initialRetryDelayMillis: 100,
      retryDelayMultiplier: 2,
      maxRetryDelayMillis: 2000,
      initialRpcTimeoutMillis: Math.min(5000, deadlineMs),
      rpcTimeoutMultiplier: 1,
      maxRpcTimeoutMillis: Math.min(5000, deadlineMs),
      totalTimeoutMillis: deadlineMs,
    },
  },
});

const failure = (topic: string, cause: unknown): SystemError =>
  new SystemError('Transient', `Pub/Sub: publish to ${topic} failed`, { cause });

/** `PUBSUB_EMULATOR_HOST` is honoured by the library itself. Opens nothing until the first publish. */
export const openPublisher = (options: PublisherOptions): Publisher => {
  const client = new PubSub({ projectId: options.projectId, ...CHANNEL });
  const settings = {
    batching: { maxMilliseconds: BATCH_WAIT_MS },
    gaxOpts: gaxOptions(options.deadlineMs ?? 10_000),
  };
  const probesTopic = options.probesTopic ?? 'proxy-probes';
  const changes: Topic = client.topic(options.changesTopic, { ...settings, messageOrdering: true });
  const probes: Topic = client.topic(probesTopic, settings);
  const traced = (traceparent = options.traceparent?.()) =>
    traceparent === undefined ? {} : { attributes: { [TRACEPARENT_ATTRIBUTE]: traceparent } };
  return {
    async change({ namespace, name, uid, reason, traceparent }, key = uid) {
      const json = { namespace, name, uid, reason };
      try {
        await changes.publishMessage({ json, orderingKey: key, ...traced(traceparent) });
      } catch (cause) {
        // The library refuses a key after a failure until told otherwise. A nudge carries no state, so order is not lost.
        changes.resumePublishing(key);
        throw failure(options.changesTopic, cause);
      }
    },
    async probe({ uid, reason, traceparent }) {
      try {
        await probes.publishMessage({ json: { uid, reason }, ...traced(traceparent) });
      } catch (cause) {
        throw failure(probesTopic, cause);
      }
    },
    async close() {
      await Promise.allSettled([changes.flush(), probes.flush()]);
      await client.close();
    },
  };
};
