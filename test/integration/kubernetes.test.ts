import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { z } from 'zod';

import type { Cluster, ProxyObject, ProxyStatus } from '#shared/kubernetes/cluster.ts';

import { EXTERNAL, call, createProxy, proxyPath, randomName, randomNamespace, stored } from './proxies.ts';
import { openLink } from '#test/services/link.ts';
import { bindRole, kubeconfigVia, openAs } from './watcher/stage.ts';

const folder = mkdtempSync(join(tmpdir(), 'kubernetes-test-'));
let admin: Cluster;
let namespace: string;
beforeAll(async () => {
  admin = openAs('admin');
  namespace = await randomNamespace();
});
afterAll(async () => {
  await admin.close();
  rmSync(folder, { recursive: true, force: true });
});

const create = async (): Promise<ProxyObject> => {
  const name = randomName('p');
  stored(await createProxy(namespace, EXTERNAL, { name }));
  const proxy = await admin.getProxy({ namespace, name });
  if (!proxy) throw new Error('it was just created');
  return proxy;
};

const remove = ({ metadata }: ProxyObject) => call(proxyPath(namespace, metadata.name), { method: 'DELETE' });

const STATUS: ProxyStatus = {
  host: 'a.example.net',
  zone: 'z',
  observed: { generation: 1, labelsHash: 'aa', secretVersions: { one: '1', two: '2' } },
  conditions: [
    {
      type: 'Ready',
      status: 'True',
      reason: 'Ready',
      message: '',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    },
  ],
};

describe('reading Proxies', () => {
  test('gives the object, and undefined only when the server says that it is not there', async () => {
    const proxy = await create();
    expect(proxy).toMatchObject({ metadata: { namespace, generation: 1 }, spec: EXTERNAL });
    expect(await admin.getProxy({ namespace, name: 'none' })).toBeUndefined();
    const stranger = openAs('health');
    const refused = stranger.getProxy({ namespace, name: 'none' });
    await expect(refused).rejects.toMatchObject({ code: 'Unauthorised' });
    await stranger.close();
  });

  test('an outage is Transient, and the next call after it works', async () => {
    const link = await openLink(new URL(inject('cluster').server).host);
    link.refuse();
    const cluster = openAs('admin', kubeconfigVia(folder, link.host, 'admin'));
    await expect(cluster.getProxy({ namespace, name: 'none' })).rejects.toMatchObject({ code: 'Transient' });
    link.heal();
    expect(await cluster.getProxy({ namespace, name: 'none' })).toBeUndefined();
    await cluster.close();
    await link.close();
  });

  test('keeps one connection for many calls', async () => {
    const link = await openLink(new URL(inject('cluster').server).host);
    const cluster = openAs('admin', kubeconfigVia(folder, link.host, 'admin'));
    for (let n = 0; n < 20; n += 1) await cluster.getProxy({ namespace, name: 'none' });
    expect(link.attempts()).toBe(1);
    await cluster.close();
    await link.close();
  });

  test('a call over a connection that died without a sign ends at its deadline, the next one works', async () => {
    const link = await openLink(new URL(inject('cluster').server).host);
    const cluster = openAs('admin', kubeconfigVia(folder, link.host, 'admin'));
    await cluster.getProxy({ namespace, name: 'none' });
    link.block();
    await expect(cluster.getProxy({ namespace, name: 'none' })).rejects.toMatchObject({ code: 'Transient' });
    link.heal();
    expect(await cluster.getProxy({ namespace, name: 'none' })).toBeUndefined();
    await cluster.close();
    await link.close();
  });

  test('lists every page, of the namespaces that were asked for', async () => {
    const own = await randomNamespace();
    const names = Array.from({ length: 510 }, (_, n) => `p-${n}`);
    const pending = [...names];
    const worker = async (): Promise<void> => {
      for (let name = pending.pop(); name; name = pending.pop())
        stored(await createProxy(own, EXTERNAL, { name }));
    };
    await Promise.all([worker(), worker(), worker(), worker()]);
    const listed = await admin.listProxies([own, own]);
    expect(listed.map(({ metadata }) => metadata.name).toSorted()).toEqual(names.toSorted());
    const all = await admin.listProxies(['*']);
    expect(all.filter(({ metadata }) => metadata.namespace === own)).toHaveLength(510);
    await call(`/api/v1/namespaces/${own}`, { method: 'DELETE' });
  });
});

describe('writing Proxies', () => {
  test('row 11: a status is merged in one patch, and what vanished from it is removed', async () => {
    const proxy = await admin.patchStatus(await create(), STATUS);
    expect(proxy.status).toEqual(STATUS);
    const { zone: _zone, conditions: _conditions, ...rest } = STATUS;
    const next = {
      ...rest,
      host: 'b.example.net',
      observed: { generation: 2, secretVersions: { two: '3' } },
    };
    await admin.patchStatus(proxy, next);
    const read = await admin.getProxy(proxy.metadata);
    expect(read?.status).toEqual(next);
    expect(read?.metadata.generation).toBe(1);
  });

  test('K1: an equal status is not written', async () => {
    const proxy = await admin.patchStatus(await create(), STATUS);
    const same = await admin.patchStatus(proxy, structuredClone(STATUS));
    expect(same.metadata.resourceVersion).toBe(proxy.metadata.resourceVersion);
    expect((await admin.getProxy(proxy.metadata))?.metadata.resourceVersion).toBe(
      proxy.metadata.resourceVersion,
    );
  });

  test('a version that is not the newest is a Conflict, and changes nothing', async () => {
    const old = await create();
    await admin.setFinalizers(old, ['example.com/one']);
    await expect(admin.patchStatus(old, STATUS)).rejects.toMatchObject({ code: 'Conflict' });
    await expect(admin.setFinalizers(old, [])).rejects.toMatchObject({ code: 'Conflict' });
    const read = await admin.getProxy(old.metadata);
    expect([read?.metadata.finalizers, read?.status]).toEqual([['example.com/one'], undefined]);
    if (read) await admin.setFinalizers(read, []);
  });

  test('a Proxy that is gone is NotFound, another one under its name is a Conflict', async () => {
    const proxy = await create();
    await remove(proxy);
    await expect(admin.patchStatus(proxy, STATUS)).rejects.toMatchObject({ code: 'NotFound' });
    await expect(admin.setFinalizers(proxy, [])).rejects.toMatchObject({ code: 'NotFound' });
    stored(await createProxy(namespace, EXTERNAL, { name: proxy.metadata.name }));
    await expect(admin.patchStatus(proxy, STATUS)).rejects.toMatchObject({ code: 'Conflict' });
  });

  test('a status that the schema refuses is InvalidSpec, with the server’s words', async () => {
    await expect(admin.patchStatus(await create(), { port: 70_000 })).rejects.toMatchObject({
      code: 'InvalidSpec',
      provider: { code: 'Invalid' },
    });
  });

  test('the last finalizer goes, and a deleted Proxy with it', async () => {
    const proxy = await admin.setFinalizers(await create(), ['example.com/one']);
    await remove(proxy);
    const deleting = await admin.getProxy(proxy.metadata);
    expect(deleting?.metadata.deletionTimestamp).toBeDefined();
    expect(deleting?.metadata.generation).toBe(2);
    if (deleting) await admin.setFinalizers(deleting, []);
    expect(await admin.getProxy(proxy.metadata)).toBeUndefined();
  });
});

describe('Secrets', () => {
  test('are found with labels, bytes and version, missing, or unreadable: three different things', async () => {
    const body = { metadata: { name: 's', labels: { a: 'b' } }, data: { key: '/wD+', text: 'aGk=' } };
    await call(`/api/v1/namespaces/${namespace}/secrets`, { method: 'POST', body });
    const reading = await admin.readSecret(namespace, 's');
    expect(reading).toMatchObject({ kind: 'found', labels: { a: 'b' } });
    if (reading.kind !== 'found') return;
    expect(reading.version).toMatch(/^\d+$/);
    expect(Buffer.from(reading.data['key'] ?? []).toString('hex')).toBe('ff00fe');
    expect(await admin.readSecret(namespace, 'none')).toEqual({ kind: 'missing' });
    const stranger = openAs('health');
    expect(await stranger.readSecret(namespace, 's')).toMatchObject({ kind: 'unreadable' });
    await stranger.close();
  });
});

describe('Events', () => {
  test('a repetition is counted in the first one', async () => {
    await bindRole(namespace, 'watcher');
    const proxy = await create();
    const cluster = openAs('watcher');
    const event = { type: 'Warning', reason: 'PublishFailed', message: 'It does not work.' } as const;
    await cluster.recordEvent(proxy, event);
    await cluster.recordEvent(proxy, event);
    await cluster.recordEvent(proxy, { ...event, message: 'Nor does this.' });
    const selector = `fieldSelector=involvedObject.uid=${proxy.metadata.uid}`;
    const { body } = await call(`/api/v1/namespaces/${namespace}/events?${selector}`);
    const items = z
      .object({ items: z.array(z.object({ message: z.string(), count: z.number() })) })
      .parse(body);
    expect(items.items.toSorted((a, b) => b.count - a.count)).toEqual([
      { message: 'It does not work.', count: 2 },
      { message: 'Nor does this.', count: 1 },
    ]);
    await cluster.close();
  });

  test('a refusal is not thrown', async () => {
    const cluster = openAs('health');
    const event = { type: 'Normal', reason: 'Any', message: 'x' } as const;
    await expect(cluster.recordEvent(await create(), event)).resolves.toBeUndefined();
    await cluster.close();
  });
});
