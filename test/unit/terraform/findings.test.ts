import { describe, expect, test } from 'vitest';

import { SUBSCRIPTIONS } from '#test/stack/subscriptions.ts';
import { environmentFindings, publicFindings, subscriptionFindings } from '#test/terraform/findings.ts';
import { planOf, type PlannedResource } from '#test/terraform/plan.ts';

const resource = (type: string, after: Record<string, unknown>, unknown = {}): PlannedResource => ({
  address: `${type}.main`,
  type,
  change: { actions: ['create'], after, after_unknown: unknown },
});

const aFunction = (name: string, known: Record<string, string>, unknown: Record<string, true> = {}) =>
  resource(
    'google_cloudfunctions2_function',
    { build_config: [{ entry_point: name }], service_config: [{ environment_variables: known }] },
    { service_config: [{ environment_variables: unknown }] },
  );

describe('environment of the functions', () => {
  test('agrees when every key that is read is given, known at plan time or not', () => {
    const plan = [aFunction('health', { A: '1' }, { URL: true })];
    expect(environmentFindings(plan, { health: ['A', 'URL', 'KUBECONFIG'] })).toEqual([]);
  });

  test('a key too few, a key too many, and a function too many or too few are found', () => {
    const plan = [aFunction('health', { B: '1' }), aFunction('stranger', {})];
    expect(environmentFindings(plan, { health: ['A'], gc: [] })).toEqual([
      'health reads A, but is not given it',
      'health is given B, but does not read it',
      'function stranger is deployed, but there is no such function',
      'function gc is not deployed',
    ]);
  });
});

describe('bindings', () => {
  test.each(['allUsers', 'allAuthenticatedUsers'])('%s is found, alone or among others', (member) => {
    const alone = resource('google_cloud_run_v2_service_iam_member', { member });
    const among = resource('google_cloud_run_v2_service_iam_binding', { members: ['user:a@b.c', member] });
    expect(publicFindings([alone, among])).toHaveLength(2);
  });

  test('of named members are fine', () => {
    expect(publicFindings([resource('google_project_iam_member', { member: 'user:a@b.c' })])).toEqual([]);
  });
});

describe('push subscriptions', () => {
  const planned = SUBSCRIPTIONS.map((one) =>
    resource('google_pubsub_subscription', {
      name: `prod-${one.name}`,
      push_config: [{}],
      ack_deadline_seconds: one.ackDeadlineSeconds,
      enable_message_ordering: one.ordered,
      retry_policy: [
        { minimum_backoff: `${one.retry.minimumSeconds}s`, maximum_backoff: `${one.retry.maximumSeconds}s` },
      ],
      dead_letter_policy: [{ max_delivery_attempts: one.maxDeliveryAttempts }],
    }),
  );

  test('that equal the local stack are fine', () => {
    expect(subscriptionFindings(planned, SUBSCRIPTIONS, 'prod-')).toEqual([]);
  });

  test('row 22: that are missing or otherwise, such as without retries, are found', () => {
    expect(subscriptionFindings(planned.slice(1), SUBSCRIPTIONS, 'prod-')).toHaveLength(1);
    const [first, ...rest] = SUBSCRIPTIONS;
    const other = first ? [{ ...first, ackDeadlineSeconds: 10 }, ...rest] : [];
    expect(subscriptionFindings(planned, other, 'prod-')).toHaveLength(1);
  });
});

test('an output without the plan is an error, not an empty plan', () => {
  expect(() => planOf('{"type":"test_summary"}\nnot json', 'plan')).toThrow(/no plan/);
});
