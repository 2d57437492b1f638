import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { applyObject } from '#test/services/api.ts';
import { api, call, createProxy, EXTERNAL, mergePatch, proxyPath, randomName, stored } from './proxies.ts';
import { FUNCTION_IDENTITIES, type Identity } from './provided.ts';

const OWN = 'crawlers';
const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'];
const RESOURCES = [
  ['crawl.example.com', 'proxies', ''],
  ['crawl.example.com', 'proxies', 'status'],
  ['crawl.example.com', 'proxies', 'finalizers'],
  ['', 'secrets', ''],
  ['', 'events', ''],
  ['', 'pods', ''],
  ['', 'pods', 'exec'],
  ['', 'configmaps', ''],
  ['', 'namespaces', ''],
  ['rbac.authorization.k8s.io', 'rolebindings', ''],
  ['apiextensions.k8s.io', 'customresourcedefinitions', ''],
] as const;

const ALLOWED: Record<Exclude<Identity, 'admin'> | 'echo', string[]> = {
  watcher: ['get proxies', 'list proxies', 'watch proxies', 'get secrets', 'create events', 'patch events'],
  provision: [
    'get proxies',
    'patch proxies',
    'get proxies/status',
    'patch proxies/status',
    'get secrets',
    'create events',
    'patch events',
  ],
  gc: ['get proxies', 'list proxies'],
  health: [],
  discovery: [],
  echo: [],
};

const review = z.object({ status: z.object({ allowed: z.boolean() }) });

/** The API server's own judgement, by the rules that it enforces. */
const may = async (user: string, attributes: Record<string, string>): Promise<boolean> => {
  const answer = await call('/apis/authorization.k8s.io/v1/subjectaccessreviews', {
    method: 'POST',
    body: {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: { user, groups: ['system:authenticated'], resourceAttributes: attributes },
    },
  });
  return review.parse(answer.body).status.allowed;
};

const allRights = async (user: string, namespace: string): Promise<string[]> => {
  const asked = RESOURCES.flatMap(([group, resource, subresource]) =>
    VERBS.map((verb) => ({ group, resource, subresource, verb })),
  );
  const answers = await Promise.all(asked.map((each) => may(user, { ...each, namespace })));
  return asked
    .filter((_, index) => answers[index])
    .map(({ verb, resource, subresource }) => `${verb} ${resource}${subresource && `/${subresource}`}`);
};

const secret = async (): Promise<string> => {
  const name = randomName('secret');
  await applyObject(api(), { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: OWN } });
  return name;
};

describe('rights in the cluster (W8)', () => {
  test.each(Object.entries(ALLOWED))('%s may do its job and nothing else', async (user, rights) => {
    expect((await allRights(user, OWN)).sort()).toEqual(rights.toSorted());
  });

  test.each(Object.keys(ALLOWED))('%s may do nothing in a namespace of others', async (user) => {
    expect(await allRights(user, 'default')).toEqual([]);
  });

  test('only gc may look at kube-system, by which it knows the cluster', async () => {
    const users = Object.keys(ALLOWED);
    const allowed = await Promise.all(
      users.map((user) => may(user, { verb: 'get', resource: 'namespaces', name: 'kube-system' })),
    );
    expect(users.filter((_, index) => allowed[index])).toEqual(['gc']);
    expect(await may('gc', { verb: 'get', resource: 'namespaces', name: OWN })).toBe(false);
  });
});

describe('with its own token', () => {
  test('provision sets the finalizer and the status, and cannot create or delete a Proxy', async () => {
    const name = randomName('rights');
    const path = proxyPath(OWN, name);
    stored(await createProxy(OWN, EXTERNAL, { name }));
    const finalizers = ['crawl.example.com/proxy'];
    const held = stored(await mergePatch(path, { metadata: { finalizers } }, 'provision'));
    expect(held.metadata['finalizers']).toEqual(finalizers);
    const status = { observedGeneration: 1 };
    expect(stored(await mergePatch(`${path}/status`, { status }, 'provision')).status).toEqual(status);
    expect((await call(path, { method: 'DELETE' }, 'provision')).status).toBe(403);
    expect((await call(proxyPath(OWN), { method: 'POST', body: {} }, 'provision')).status).toBe(403);
    stored(await mergePatch(path, { metadata: { finalizers: null } }, 'provision'));
    expect((await call(path, { method: 'DELETE' })).status).toBe(200);
  });

  test.each<Identity>(['watcher', 'provision'])('%s reads a Secret by name, and lists none', async (user) => {
    const path = `/api/v1/namespaces/${OWN}/secrets`;
    expect((await call(`${path}/${await secret()}`, {}, user)).status).toBe(200);
    expect((await call(path, {}, user)).status).toBe(403);
    expect((await call(`${path}?labelSelector=crawl.example.com/credentials`, {}, user)).status).toBe(403);
  });

  test('watcher lists Proxies where the installation is, and nowhere else', async () => {
    expect((await call(proxyPath(OWN), {}, 'watcher')).status).toBe(200);
    expect((await call('/apis/crawl.example.com/v1alpha1/proxies', {}, 'watcher')).status).toBe(403);
  });

  test('everyone else is a stranger', async () => {
    const strangers = FUNCTION_IDENTITIES.filter((user) => ALLOWED[user].length === 0);
    expect(strangers).toEqual(['health', 'discovery']);
    for (const user of strangers) expect((await call(proxyPath(OWN), {}, user)).status).toBe(403);
  });
});
