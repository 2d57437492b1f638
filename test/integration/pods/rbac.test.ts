import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';

import { FUNCTION_IDENTITIES, type Identity } from '../provided.ts';
import { call, randomNamespace } from '../proxies.ts';
import { rights } from '../rights.ts';
import { grantPods } from './fixture.ts';

type Rights = Readonly<Record<string, readonly string[]>>;

/** Verbs by resource: what the optional component adds, for each identity. */
const ADDED: Readonly<Record<(typeof FUNCTION_IDENTITIES)[number], Rights>> = {
  watcher: { pods: ['list', 'watch'] },
  provision: { pods: ['create', 'delete', 'get', 'list'], secrets: ['create'] },
  gc: { pods: ['delete', 'get', 'list'] },
  health: {},
  discovery: {},
};

const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'] as const;
/** What a Pod leads to, and what a stolen identity would look for next. */
const RESOURCES = [
  'pods',
  'pods/exec',
  'pods/log',
  'pods/status',
  'pods/ephemeralcontainers',
  'secrets',
  'configmaps',
  'serviceaccounts/token',
] as const;

const reviewSchema = z.object({ status: z.object({ allowed: z.boolean() }) });

/** By the API server's own judgement. */
const may = async (user: Identity, namespace: string, verb: string, path: string): Promise<boolean> => {
  const [resource, subresource] = path.split('/');
  const attributes = { namespace, verb, resource, ...(subresource ? { subresource } : {}) };
  const answer = await call(
    '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    {
      method: 'POST',
      body: {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SelfSubjectAccessReview',
        spec: { resourceAttributes: attributes },
      },
    },
    user,
  );
  return reviewSchema.parse(answer.body).status.allowed;
};

const allowedIn = async (user: Identity, namespace: string): Promise<readonly string[]> => {
  const cells = RESOURCES.flatMap((resource) => VERBS.map((verb) => [verb, resource] as const));
  const answers = await Promise.all(
    cells.map(async ([verb, resource]) =>
      (await may(user, namespace, verb, resource)) ? [`${verb} ${resource}`] : [],
    ),
  );
  return answers.flat().toSorted();
};

const flat = (table: Rights): readonly string[] =>
  Object.entries(table)
    .flatMap(([resource, verbs]) => verbs.map((verb) => `${verb} ${resource}`))
    .toSorted();

/** gc and provision tell clusters apart by it, wherever they are. */
const clusterWide = (user: string): readonly string[] =>
  user === 'gc' || user === 'provision' ? ['get namespaces kube-system'] : [];

describe('the optional component for Pods (W8)', () => {
  let granted: string;
  let other: string;
  beforeAll(async () => {
    granted = await randomNamespace();
    other = await randomNamespace();
    await grantPods(granted);
  });

  test.each(FUNCTION_IDENTITIES)('adds for %s exactly these rights, verb by verb', async (user) => {
    expect(await allowedIn(user, granted)).toEqual(flat(ADDED[user]));
    // Nothing beside them either, whatever it may be about.
    expect(await rights(user, granted)).toEqual([...flat(ADDED[user]), ...clusterWide(user)].toSorted());
  });

  test.each(FUNCTION_IDENTITIES)('adds nothing for %s in any other namespace', async (user) => {
    expect(await allowedIn(user, other)).toEqual([]);
    expect(await rights(user, other)).toEqual(clusterWide(user));
  });

  test('lets nobody look into all namespaces', async () => {
    const answers = FUNCTION_IDENTITIES.map((user) => call('/api/v1/pods', {}, user));
    const statuses = (await Promise.all(answers)).map(({ status }) => status);
    expect(statuses).toEqual(FUNCTION_IDENTITIES.map(() => 403));
  });
});
