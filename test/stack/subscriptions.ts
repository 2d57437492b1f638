/** Topics and push subscriptions of an installation, as the Terraform module makes them. */

export interface PushSubscription {
  readonly name: string;
  readonly topic: string;
  readonly deadLetterTopic: string;
  /** Deliveries of one message before it goes to the dead-letter topic. */
  readonly maxDeliveryAttempts: number;
  readonly ordered: boolean;
  /** Pause after a refusal, doubled each time, in seconds. */
  readonly retry: { readonly minimumSeconds: number; readonly maximumSeconds: number };
  /** Time for one answer, in seconds. */
  readonly ackDeadlineSeconds: number;
  /** The function that is called, and its path. */
  readonly target: { readonly function: 'provision' | 'health'; readonly path: string };
}

const COMMON = {
  maxDeliveryAttempts: 20,
  retry: { minimumSeconds: 5, maximumSeconds: 60 },
  ackDeadlineSeconds: 600,
} as const;

export const SUBSCRIPTIONS: readonly PushSubscription[] = [
  {
    ...COMMON,
    name: 'proxy-changes-provision',
    topic: 'proxy-changes',
    deadLetterTopic: 'proxy-changes-dead',
    ordered: true,
    target: { function: 'provision', path: '/' },
  },
  {
    ...COMMON,
    name: 'proxy-probes-health',
    topic: 'proxy-probes',
    deadLetterTopic: 'proxy-probes-dead',
    ordered: false,
    target: { function: 'health', path: '/probes' },
  },
];

const prefixed = (one: PushSubscription, prefix: string): PushSubscription => ({
  ...one,
  name: `${prefix}${one.name}`,
  topic: `${prefix}${one.topic}`,
  deadLetterTopic: `${prefix}${one.deadLetterTopic}`,
});

/** The same under the names that a further installation in the project gives them. */
export const subscriptionsOf = (prefix: string): readonly PushSubscription[] =>
  SUBSCRIPTIONS.map((one) => prefixed(one, prefix));
