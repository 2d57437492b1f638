/**
 * Pub/Sub push as production does it, on top of the emulator's pull: the emulator's own push has no retry policy, no dead
 * letter, no delivery attempt, leaves out the ordering key, and keeps only a request or two in flight.
 */

import { PubSub, type Message, type Subscription } from '@google-cloud/pubsub';

import type { Log } from '#shared/app/log.ts';
import { pause } from '#shared/app/wait.ts';

import type { PushSubscription } from './subscriptions.ts';

export interface DispatcherOptions {
  readonly projectId: string;
  /** `http://host:port` of a function. */
  readonly urlOf: (target: PushSubscription['target']['function']) => string;
  readonly subscriptions: readonly PushSubscription[];
  readonly log: Log;
}

export interface Dispatcher {
  /** Ends deliveries that wait, lets those in flight go, and closes the client. */
  stop(): Promise<void>;
}

/** Outstanding messages per subscription: production's window for a slow handler in one region. */
const WINDOW = 3000;

const envelope = (message: Message, subscription: string, attempt: number): string =>
  JSON.stringify({
    message: {
      data: message.data.toString('base64'),
      attributes: message.attributes,
      messageId: message.id,
      message_id: message.id,
      publishTime: message.publishTime.toISOString(),
      publish_time: message.publishTime.toISOString(),
      ...(message.orderingKey ? { orderingKey: message.orderingKey } : {}),
    },
    subscription,
    deliveryAttempt: attempt,
  });

/** True when the function took the message. */
const post = async (url: string, body: string, timeoutMs: number, signal: AbortSignal): Promise<boolean> => {
  try {
    const answer = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
    });
    await answer.arrayBuffer();
    return answer.ok;
  } catch {
    // No answer is a refusal, whatever the reason: that is all that Pub/Sub makes of it.
    return false;
  }
};

const retryDelayMs = ({ retry }: PushSubscription, attempt: number): number =>
  1000 * Math.min(retry.maximumSeconds, retry.minimumSeconds * 2 ** (attempt - 1));

const makeDeliverer = (client: PubSub, { urlOf, log }: DispatcherOptions, signal: AbortSignal) => {
  const bury = async (message: Message, { name, deadLetterTopic }: PushSubscription): Promise<void> => {
    log.warning('message went to the dead-letter topic', { subscription: name, messageId: message.id });
    await client.topic(deadLetterTopic).publishMessage({
      data: message.data,
      attributes: { ...message.attributes, CloudPubSubDeadLetterSourceSubscription: name },
    });
  };
  return async (message: Message, subscription: PushSubscription): Promise<void> => {
    const url = `${urlOf(subscription.target.function)}${subscription.target.path}`;
    const fullName = `projects/${client.projectId}/subscriptions/${subscription.name}`;
    for (let attempt = 1; !signal.aborted; attempt += 1) {
      const body = envelope(message, fullName, attempt);
      if (await post(url, body, subscription.ackDeadlineSeconds * 1000, signal)) return message.ack();
      if (attempt >= subscription.maxDeliveryAttempts) {
        await bury(message, subscription);
        return message.ack();
      }
      await pause(retryDelayMs(subscription, attempt), signal);
    }
  };
};

/** Runs the deliveries of one ordering key one after the other; a key is forgotten when it has nothing left. */
const makeLanes = () => {
  const lanes = new Map<string, Promise<void>>();
  return (key: string, work: () => Promise<void>): Promise<void> => {
    const mine = (lanes.get(key) ?? Promise.resolve()).then(work);
    lanes.set(key, mine);
    return mine.finally(() => {
      if (lanes.get(key) === mine) lanes.delete(key);
    });
  };
};

const createTopology = async (client: PubSub, subscriptions: readonly PushSubscription[]): Promise<void> => {
  const topics = new Set(subscriptions.flatMap(({ topic, deadLetterTopic }) => [topic, deadLetterTopic]));
  await Promise.all([...topics].map((topic) => client.createTopic(topic)));
  await Promise.all(
    subscriptions.flatMap(({ name, topic, deadLetterTopic, ordered, ackDeadlineSeconds }) => [
      client.createSubscription(topic, name, { enableMessageOrdering: ordered, ackDeadlineSeconds }),
      client.createSubscription(deadLetterTopic, deadLetterTopic),
    ]),
  );
};

const listen = (
  client: PubSub,
  subscription: PushSubscription,
  options: DispatcherOptions,
  signal: AbortSignal,
): Subscription => {
  const deliver = makeDeliverer(client, options, signal);
  const inLane = makeLanes();
  const pull = client.subscription(subscription.name, {
    flowControl: { maxMessages: WINDOW, allowExcessMessages: false },
    // What is not acknowledged when the stack ends is nobody's any more.
    closeOptions: { behavior: 'NACK' },
  });
  pull.on('error', (error: unknown) => options.log.error(`pull of ${subscription.name} failed`, error));
  pull.on('message', (message: Message) => {
    const work = (): Promise<void> => deliver(message, subscription);
    const done = message.orderingKey ? inLane(message.orderingKey, work) : work();
    done.catch((error: unknown) => options.log.error(`delivery of ${message.id} failed`, error));
  });
  return pull;
};

/** Creates topics and subscriptions on the emulator and starts delivering. */
export const startDispatcher = async (options: DispatcherOptions): Promise<Dispatcher> => {
  const client = new PubSub({ projectId: options.projectId });
  await createTopology(client, options.subscriptions);
  const ended = new AbortController();
  const pulls = options.subscriptions.map((subscription) =>
    listen(client, subscription, options, ended.signal),
  );
  return {
    async stop() {
      ended.abort();
      await Promise.all(pulls.map((pull) => pull.close()));
      await client.close();
    },
  };
};
