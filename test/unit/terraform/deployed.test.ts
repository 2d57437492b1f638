import { join } from 'node:path';

import { expect, test } from 'vitest';

import { SUBSCRIPTIONS } from '#test/stack/subscriptions.ts';
import {
  deliveryFindings,
  deployedFunctions,
  startFindings,
  watcherFindings,
} from '#test/terraform/deployed.ts';
import { FUNCTIONS } from '#test/tools/build.ts';

const FOLDERS = join(import.meta.dirname, '../../../functions');
const uri = (name: string): string => `https://${name}.run.app`;

/** Functions as the stand-in remembers them, all with the same environment. */
const functions = (env: Readonly<Record<string, string>>) =>
  deployedFunctions(
    new Map(
      FUNCTIONS.map((name) => [
        `cloudfunctions/projects/p/locations/l/functions/one-${name}`,
        { serviceConfig: { uri: uri(name), serviceAccountEmail: 'a@b', environmentVariables: env } },
      ]),
    ),
    'one-',
  );

const subscriptions = SUBSCRIPTIONS.map((one) => ({
  name: `projects/p/subscriptions/one-${one.name}`,
  topic: `projects/p/topics/one-${one.topic}`,
  ackDeadlineSeconds: one.ackDeadlineSeconds,
  enableMessageOrdering: one.ordered,
  retryPolicy: { minimumBackoff: '5s', maximumBackoff: '60s' },
  deadLetterPolicy: {
    deadLetterTopic: `projects/p/topics/one-${one.deadLetterTopic}`,
    maxDeliveryAttempts: one.maxDeliveryAttempts,
  },
  pushConfig: { pushEndpoint: `${uri(one.target.function)}${one.target.path}` },
}));
const judge = (list: readonly object[]): number =>
  deliveryFindings({ subscriptions: list }, { projectId: 'p', prefix: 'one-' }, SUBSCRIPTIONS, functions({}))
    .length;

test('subscriptions that deliver as the local stack does are no finding, whatever another installation has', () => {
  const another = subscriptions.map((one) => ({ ...one, name: one.name.replace('/one-', '/two-') }));
  expect(judge([...subscriptions, ...another, { name: 'projects/p/subscriptions/one-dead' }])).toBe(0);
});

test.each([
  ['another function', { pushConfig: { pushEndpoint: `${uri('gc')}/` } }],
  ['another order', { enableMessageOrdering: false }],
  [
    'more attempts',
    { deadLetterPolicy: { deadLetterTopic: 'projects/p/topics/x', maxDeliveryAttempts: 99 } },
  ],
])('a subscription with %s is a finding', (_, other) => {
  expect(judge(subscriptions.map((one, at) => (at === 0 ? { ...one, ...other } : one)))).toBe(1);
});

test('a subscription that is missing is a finding', () => {
  expect(judge(subscriptions.slice(1))).toBe(1);
});

test('functions and a watcher whose environment lacks what they read are findings', async () => {
  const findings = await startFindings(functions({ INSTALLATION_ID: 'one' }), FOLDERS);
  expect(findings.map((text) => /functions\/(\w+)\//.exec(text)?.[1])).toEqual([
    'provision',
    'health',
    'discovery',
    'gc',
  ]);
  expect(await watcherFindings('{ data: { INSTALLATION_ID: one } }', FOLDERS)).toHaveLength(1);
});

test('a function that is not there is a finding', async () => {
  const findings = await startFindings(new Map(), FOLDERS);
  expect(findings).toContain('echo is not deployed');
});
