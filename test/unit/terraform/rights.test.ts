import { expect, test } from 'vitest';

import type { PlannedResource } from '#test/terraform/plan.ts';
import { rightsFindings } from '#test/terraform/rights.ts';

const granted = (
  address: string,
  role: string | undefined,
  condition: readonly unknown[] = [],
): PlannedResource => ({
  address,
  type: address.replace(/\..*/, ''),
  change: { actions: ['create'], after: { ...(role ? { role } : {}), condition }, after_unknown: {} },
});

const TOPIC = 'google_pubsub_topic_iam_member.publisher["gc-changes"]';
const DATABASE = 'google_project_iam_member.database["gc-main"]';
const MACHINES = 'google_project_iam_member.machines["gc"]';
const WANTED = { [TOPIC]: 'roles/pubsub.publisher', [DATABASE]: 'roles/datastore.user', [MACHINES]: 'own' };
const right = [
  granted(TOPIC, 'roles/pubsub.publisher'),
  granted(DATABASE, 'roles/datastore.user', [{}]),
  granted(MACHINES, undefined, [{}]),
];

test('bindings that are just the wanted ones are fine', () => {
  expect(rightsFindings(right, WANTED)).toEqual([]);
});

test.each([
  ['one is missing', right.slice(1)],
  ['one is too many', [...right, granted('google_project_iam_member.extra', 'roles/viewer')]],
  ['a whole policy is set', [...right, granted('google_project_iam_policy.all', undefined)]],
  ['the role is another', [granted(TOPIC, 'roles/pubsub.admin'), ...right.slice(1)]],
  ['a condition is missing', [...right.slice(0, 2), granted(MACHINES, undefined)]],
])('it is found when %s', (_, plan) => {
  expect(rightsFindings(plan, WANTED)).toHaveLength(1);
});
