import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, test } from 'vitest';

import type { PlannedResource } from '#test/terraform/plan.ts';
import {
  audienceFindings,
  codeFindings,
  databaseFindings,
  indexFindings,
  ingressFindings,
  invokerFindings,
  repeatFindings,
} from '#test/terraform/policies.ts';
import { queryShapes, type QueryShape } from '#test/terraform/queries.ts';

const resource = (
  type: string,
  after: Record<string, unknown>,
  { address = `${type}.main`, actions = ['create'] }: { address?: string; actions?: string[] } = {},
): PlannedResource => ({ address, type, change: { actions, after, after_unknown: {} } });

const index = (collection: string, ...fields: string[]) =>
  resource('google_firestore_index', { collection, fields: fields.map((field) => ({ field_path: field })) });

const holders = (indexes: readonly unknown[]) =>
  resource('google_firestore_field', {
    collection: 'leases',
    field: 'holders',
    index_config: [{ indexes }],
  });
const code = (name: string) => resource('google_storage_bucket_object', { name });
const again = (...actions: string[]) => [resource('google_pubsub_topic', {}, { actions })];
const gcWith = (ingress: string) =>
  resource('google_cloudfunctions2_function', {
    build_config: [{ entry_point: 'gc' }],
    service_config: [{ ingress_settings: ingress }],
  });
const database = (policy: string, state: string) =>
  resource('google_firestore_database', { deletion_policy: policy, delete_protection_state: state });

describe('row 33: indexes', () => {
  const due: QueryShape = {
    collection: 'proxies',
    filters: [
      ['installation', 'EQUAL'],
      ['gone', 'EQUAL'],
      ['wakeAt', 'LESS_THAN_OR_EQUAL'],
    ],
    order: ['wakeAt'],
  };

  test.each([
    ['none', []],
    ['one of another collection', [index('leases', 'installation', 'gone', 'wakeAt')]],
    ['one with the range first', [index('proxies', 'wakeAt', 'installation', 'gone')]],
    ['one that lacks a field', [index('proxies', 'installation', 'wakeAt')]],
    ['one with a field too many', [index('proxies', 'installation', 'gone', 'bucket', 'wakeAt')]],
  ])('a query of several fields with %s is found', (_, plan) => {
    expect(indexFindings(plan, [due])).toHaveLength(1);
  });

  test('equalities may come in any order', () => {
    expect(indexFindings([index('proxies', 'gone', 'installation', 'wakeAt')], [due])).toEqual([]);
  });

  test('a query of one field needs none, unless that was given up', () => {
    const one: QueryShape = { collection: 'leases', filters: [['holders', 'ARRAY_CONTAINS']], order: [] };
    expect(indexFindings([], [one])).toEqual([]);
    expect(indexFindings([holders([{ array_config: 'CONTAINS' }])], [one])).toEqual([]);
    expect(indexFindings([holders([])], [one])).toHaveLength(1);
  });

  test('no condition in the code escapes the check', async () => {
    const folder = join(import.meta.dirname, '../../../shared/firestore');
    const source = readdirSync(folder)
      .map((file) => readFileSync(join(folder, file), 'utf8'))
      .join('\n');
    const written = [...source.matchAll(/\.(?:where|orderBy)\(\s*'([^']+)'/g)].map(([, field]) => field);
    const shapes = await queryShapes();
    const asked = new Set(
      shapes.flatMap(({ filters, order }) => [...filters.map(([field]) => field), ...order]),
    );
    expect(written.length).toBeGreaterThan(15);
    expect(written.filter((field) => field === undefined || !asked.has(field))).toEqual([]);
    const queried = [...source.matchAll(/db\s*\.collection\('(\w+)'\)\s*\.where/g)].map(([, name]) => name);
    const collections = new Set<string | undefined>(shapes.map(({ collection }) => collection));
    expect(queried.filter((name) => !collections.has(name))).toEqual([]);
  });
});

test('row 83: code under a name that does not follow its content is found', () => {
  expect(codeFindings([code(`gc-${'0a'.repeat(32)}.zip`)])).toEqual([]);
  expect(codeFindings([code('gc.zip')])).toHaveLength(1);
});

test('row 84: a second plan that is not empty is found', () => {
  expect(repeatFindings([...again('no-op'), ...again('read')])).toEqual([]);
  expect(repeatFindings([...again('update'), ...again('delete', 'create')])).toHaveLength(2);
});

describe('row 85: calls of functions', () => {
  const uri = 'https://gc.a.run.app';
  const job = (url: string, audience: string) => [
    resource('google_cloudfunctions2_function', { service_config: [{ uri }] }),
    resource('google_cloud_scheduler_job', { http_target: [{ uri: url, oidc_token: [{ audience }] }] }),
  ];
  const push = (endpoint: string, audience: string) => [
    resource('google_cloudfunctions2_function', { service_config: [{ uri }] }),
    resource('google_pubsub_subscription', {
      push_config: [{ push_endpoint: endpoint, oidc_token: [{ audience }] }],
    }),
  ];

  test.each([job, push])('with a token that is made out to somebody else are found', (call) => {
    expect(audienceFindings(call(`${uri}/`, uri))).toEqual([]);
    expect(audienceFindings(call(`${uri}/`, `${uri}/`))).toHaveLength(1);
    expect(audienceFindings(call(`${uri}/`, 'https://echo.a.run.app'))).toHaveLength(1);
    expect(audienceFindings(call('https://echo.a.run.app/', uri))).toHaveLength(1);
  });

  test('by a caller too many or too few are found, and so are other bindings of a service', () => {
    const type = 'google_cloud_run_v2_service_iam_member';
    const binding = (address: string) => resource(type, {}, { address });
    const gc = binding(`module.function["gc"].${type}.invoker["scheduler"]`);
    const echo = binding(`module.echo.${type}.invoker["health"]`);
    const wanted = { gc: ['scheduler'], echo: ['health'] };
    expect(invokerFindings([gc, echo], wanted)).toEqual([]);
    expect(invokerFindings([gc], wanted)).toHaveLength(1);
    expect(invokerFindings([gc, echo], { ...wanted, gc: [] })).toHaveLength(1);
    expect(invokerFindings([gc, echo, binding(`${type}.other`)], wanted)).toHaveLength(1);
  });

  test('from the internet are found where only Google calls', () => {
    expect(ingressFindings([gcWith('ALLOW_INTERNAL_ONLY')], [])).toEqual([]);
    expect(ingressFindings([gcWith('ALLOW_ALL')], [])).toHaveLength(1);
    expect(ingressFindings([gcWith('ALLOW_ALL')], ['gc'])).toEqual([]);
  });
});

test('row 86: a database that outlives its destroy unprotected, or is protected against it, is found', () => {
  expect(
    databaseFindings([
      database('ABANDON', 'DELETE_PROTECTION_ENABLED'),
      database('DELETE', 'DELETE_PROTECTION_DISABLED'),
    ]),
  ).toEqual([]);
  expect(
    databaseFindings([
      database('ABANDON', 'DELETE_PROTECTION_DISABLED'),
      database('DELETE', 'DELETE_PROTECTION_ENABLED'),
    ]),
  ).toHaveLength(2);
});
