import { describe, expect, test } from 'vitest';
import { applyObject } from '#test/services/api.ts';
import { api, call, createProxy, EXTERNAL, mergePatch, proxyPath, randomName, stored } from './proxies.ts';
import { FUNCTION_IDENTITIES, type Identity } from './provided.ts';
import { rights } from './rights.ts';

const OWN = 'crawlers';

const ALLOWED: Record<(typeof FUNCTION_IDENTITIES)[number], string[]> = {
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
};

const secret = async (): Promise<string> => {
  const name = randomName('secret');
  await applyObject(api(), { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: OWN } });
  return name;
};

const clusterWide = (user: string): string[] =>
  user === 'gc' || user === 'provision' ? ['get namespaces kube-system'] : [];

describe('rights in the cluster (W8)', () => {
  test.each(FUNCTION_IDENTITIES)('%s may do its job and nothing else', async (user) => {
    expect(await rights(user, OWN)).toEqual([...ALLOWED[user], ...clusterWide(user)].sort());
  });

  test.each(FUNCTION_IDENTITIES)('%s may do nothing in a namespace of others', async (user) => {
    expect(await rights(user, 'default')).toEqual(clusterWide(user));
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

  test.each<Identity>(['gc', 'provision'])(
    '%s tells the cluster by kube-system, and reads no other',
    async (user) => {
      expect((await call('/api/v1/namespaces/kube-system', {}, user)).status).toBe(200);
      expect((await call(`/api/v1/namespaces/${OWN}`, {}, user)).status).toBe(403);
    },
  );

  test('everyone else is a stranger', async () => {
    const strangers = FUNCTION_IDENTITIES.filter((user) => ALLOWED[user].length === 0);
    expect(strangers).toEqual(['health', 'discovery']);
    for (const user of strangers) expect((await call(proxyPath(OWN), {}, user)).status).toBe(403);
  });
});
