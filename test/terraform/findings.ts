/** What a plan must agree with: the functions' configuration, the local stack, and that nothing is public. */

import { z } from 'zod';

import type { PushSubscription } from '#test/stack/subscriptions.ts';

import type { PlannedResource } from './plan.ts';

/** Keys that only exist outside Google Cloud, or that the platform sets by itself. */
const LOCAL_ONLY: ReadonlySet<string> = new Set([
  'KUBECONFIG',
  'COMPUTE_ENDPOINT',
  'PROBE_CA_FILE',
  'PORT',
  'FIRESTORE_EMULATOR_HOST',
  'PUBSUB_EMULATOR_HOST',
]);

const functionSchema = z.object({
  change: z.object({
    after: z.object({
      build_config: z.tuple([z.object({ entry_point: z.string() })]),
      service_config: z.tuple([
        z.object({ environment_variables: z.record(z.string(), z.unknown()).nullish() }),
      ]),
    }),
    after_unknown: z.object({
      service_config: z.tuple([
        z.object({ environment_variables: z.record(z.string(), z.unknown()).catch({}).optional() }),
      ]),
    }),
  }),
});

const plannedEnvironment = (plan: readonly PlannedResource[]): ReadonlyMap<string, ReadonlySet<string>> =>
  new Map(
    plan
      .filter(({ type }) => type === 'google_cloudfunctions2_function')
      .map((resource) => {
        const { after, after_unknown: unknown } = functionSchema.parse(resource).change;
        return [
          after.build_config[0].entry_point,
          new Set([
            ...Object.keys(after.service_config[0].environment_variables ?? {}),
            ...Object.keys(unknown.service_config[0].environment_variables ?? {}),
          ]),
        ];
      }),
  );

/** Keys that a function reads and is not given, or is given and does not read. `schemas` has the keys by function. */
export const environmentFindings = (
  plan: readonly PlannedResource[],
  schemas: Readonly<Record<string, readonly string[]>>,
): readonly string[] => {
  const planned = plannedEnvironment(plan);
  const names = new Set([...planned.keys(), ...Object.keys(schemas)]);
  return [...names].flatMap((name) => {
    const given = planned.get(name);
    const read = schemas[name];
    if (!given) return [`function ${name} is not deployed`];
    if (!read) return [`function ${name} is deployed, but there is no such function`];
    const wanted = new Set(read.filter((key) => !LOCAL_ONLY.has(key)));
    const missing = [...wanted.difference(given)].map((key) => `${name} reads ${key}, but is not given it`);
    return missing.concat(
      [...given.difference(wanted)].map((key) => `${name} is given ${key}, but does not read it`),
    );
  });
};

const PUBLIC: ReadonlySet<unknown> = new Set(['allUsers', 'allAuthenticatedUsers']);

/** Bindings that let everybody in. */
export const publicFindings = (plan: readonly PlannedResource[]): readonly string[] =>
  plan
    .filter(({ change: { after } }) => {
      const members: unknown = after?.['members'];
      return (
        PUBLIC.has(after?.['member']) || (Array.isArray(members) && members.some((one) => PUBLIC.has(one)))
      );
    })
    .map(({ address }) => `${address} lets everybody in`);

const subscriptionSchema = z.object({
  name: z.string(),
  ack_deadline_seconds: z.number(),
  enable_message_ordering: z.boolean().nullish(),
  retry_policy: z.tuple([z.object({ minimum_backoff: z.string(), maximum_backoff: z.string() })]),
  dead_letter_policy: z.tuple([z.object({ max_delivery_attempts: z.number() })]),
});

const hasPush = (after: PlannedResource['change']['after']): boolean => {
  const push: unknown = after?.['push_config'];
  return Array.isArray(push) && push.length > 0;
};

const text = (list: readonly { readonly name: string }[]): string =>
  JSON.stringify(list.toSorted((a, b) => (a.name < b.name ? -1 : 1)));

/** Subscriptions that the local stack delivers otherwise than the module would. `prefix` is the installation's. */
export const subscriptionFindings = (
  plan: readonly PlannedResource[],
  local: readonly PushSubscription[],
  prefix: string,
): readonly string[] => {
  const planned = plan
    .filter(({ type, change }) => type === 'google_pubsub_subscription' && hasPush(change.after))
    .map(({ change }) => {
      const { name, ...rest } = subscriptionSchema.parse(change.after);
      const [retry] = rest.retry_policy;
      return {
        name: name.replace(prefix, ''),
        ordered: rest.enable_message_ordering ?? false,
        ackDeadlineSeconds: rest.ack_deadline_seconds,
        minimum: retry.minimum_backoff,
        maximum: retry.maximum_backoff,
        attempts: rest.dead_letter_policy[0].max_delivery_attempts,
      };
    });
  const wanted = local.map((one) => ({
    name: one.name,
    ordered: one.ordered,
    ackDeadlineSeconds: one.ackDeadlineSeconds,
    minimum: `${one.retry.minimumSeconds}s`,
    maximum: `${one.retry.maximumSeconds}s`,
    attempts: one.maxDeliveryAttempts,
  }));
  return text(planned) === text(wanted)
    ? []
    : [`push subscriptions differ:\n  module:      ${text(planned)}\n  local stack: ${text(wanted)}`];
};
