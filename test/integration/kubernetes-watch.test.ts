import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import type { Cluster, ProxyObject } from '#shared/kubernetes/cluster.ts';

import { EXTERNAL, call, createProxy, proxyPath, randomName, randomNamespace, stored } from './proxies.ts';
import { openAs } from './watcher/stage.ts';

let admin: Cluster;
let namespace: string;
beforeAll(async () => {
  admin = openAs('admin');
  namespace = await randomNamespace();
});
afterAll(() => admin.close());

const create = async (): Promise<ProxyObject> => {
  const name = randomName('p');
  stored(await createProxy(namespace, EXTERNAL, { name }));
  const proxy = await admin.getProxy({ namespace, name });
  if (!proxy) throw new Error('it was just created');
  return proxy;
};

const remove = ({ metadata }: ProxyObject) => call(proxyPath(namespace, metadata.name), { method: 'DELETE' });

const kinds = async (resourceVersion: string, timeoutSeconds = 1): Promise<readonly string[]> => {
  const seen: string[] = [];
  const signal = new AbortController().signal;
  const options = { namespace, resourceVersion, signal, timeoutSeconds, silenceMs: 30_000 };
  for await (const event of admin.watchProxies(options)) seen.push(event.kind);
  return seen;
};

describe('a watch', () => {
  test('row 4: says that a version is no longer kept', async () => {
    expect(await kinds('1')).toEqual(['expired']);
  });

  test('ends quietly when the server ends it, with a bookmark where nothing happened', async () => {
    const { resourceVersion } = await admin.listNamespace(namespace);
    expect((await kinds(resourceVersion, 4)).filter((kind) => kind !== 'bookmark')).toEqual([]);
  });

  test('gives every change in order, deletion included', async () => {
    const { resourceVersion } = await admin.listNamespace(namespace);
    const proxy = await admin.patchStatus(await create(), { host: 'a.example.net' });
    await remove(proxy);
    expect((await kinds(resourceVersion)).filter((kind) => kind !== 'bookmark')).toEqual([
      'changed',
      'changed',
      'deleted',
    ]);
  });

  test('ends quietly when it is told to', async () => {
    const end = new AbortController();
    const { resourceVersion } = await admin.listNamespace(namespace);
    const options = { namespace, resourceVersion, signal: end.signal, timeoutSeconds: 60, silenceMs: 70_000 };
    const watch = admin.watchProxies(options)[Symbol.asyncIterator]();
    const next = watch.next();
    end.abort();
    expect(await next).toMatchObject({ done: true });
  });

  test('throws when it is refused', async () => {
    const stranger = openAs('health');
    const options = { namespace, resourceVersion: '1', timeoutSeconds: 1, silenceMs: 5000 };
    const watch = stranger.watchProxies({ ...options, signal: new AbortController().signal });
    await expect(watch[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'Unauthorised' });
    await stranger.close();
  });
});
