import { randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { CoreV1Api, KubeConfig } from '@kubernetes/client-node';
import { afterAll, describe, expect, inject, test, vi } from 'vitest';
import { z } from 'zod';

import { callApi, type ApiAddress } from '#test/services/api.ts';
import { applyManifests, ensureNamespace } from '#test/services/apply.ts';
import { startControlPlane } from '#test/services/control-plane.ts';
import { startFirestoreEmulator, startPubsubEmulator } from '#test/services/emulators.ts';
import { startTogether, stopTogether } from '#test/services/together.ts';

import { FUNCTION_IDENTITIES, type Identity } from './provided.ts';

const cluster = inject('cluster');
const emulators = inject('emulators');

const as = (identity: Identity): ApiAddress => ({
  server: cluster.server,
  caFile: cluster.caFile,
  token: cluster.tokens[identity],
});

const created = z.object({ metadata: z.object({ uid: z.string() }) });

/** Vitest's matchers are typed `any`. */
const like = (pattern: RegExp): unknown => {
  const matcher: unknown = expect.stringMatching(pattern);
  return matcher;
};

const namespace = `services-${randomUUID().slice(0, 8)}`;

const runDir = mkdtempSync(join(tmpdir(), 'services-test-'));
afterAll(() => rmSync(runDir, { recursive: true, force: true }));

describe('the control plane', () => {
  test('speaks to a client that verifies its certificate, and says its version', async () => {
    const answer = await callApi(as('admin'), '/version');
    expect(answer).toMatchObject({
      status: 200,
      body: { gitVersion: like(/^v1\.\d+\.\d+/u) },
    });
  });

  test('is not trusted by a client that knows another authority only', async () => {
    await expect(fetch(`${cluster.server}/version`)).rejects.toMatchObject({
      cause: { code: like(/CERT|SIGNATURE/u) },
    });
  });

  test('refuses a token that it did not give out', async () => {
    const stranger = { ...as('admin'), token: 'guessed' };
    expect((await callApi(stranger, '/api/v1/namespaces')).status).toBe(401);
  });

  test.each(FUNCTION_IDENTITIES)('W8: RBAC refuses %s what nobody gave it', async (identity) => {
    const answer = await callApi(as(identity), '/api/v1/namespaces/kube-system/secrets');
    expect(answer).toMatchObject({
      status: 403,
      body: { message: like(new RegExp(`User "${identity}" cannot list resource "secrets"`, 'u')) },
    });
  });

  test('is reached through the kubeconfig of an identity', async () => {
    const config = new KubeConfig();
    config.loadFromFile(cluster.kubeconfigs.admin);
    const { items } = await config.makeApiClient(CoreV1Api).listNamespace();
    expect(items.map(({ metadata }) => metadata?.name)).toContain('kube-system');
  });

  test('collects what an object owns once that object is gone', async () => {
    const admin = as('admin');
    await ensureNamespace(admin, namespace);
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const owner = await callApi(admin, path, { method: 'POST', body: { metadata: { name: 'owner' } } });
    const { uid } = created.parse(owner.body).metadata;
    const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid }];
    const child = { metadata: { name: 'child', ownerReferences } };
    expect((await callApi(admin, path, { method: 'POST', body: child })).status).toBe(201);
    await callApi(admin, `${path}/owner`, { method: 'DELETE' });
    await vi.waitUntil(async () => (await callApi(admin, `${path}/child`)).status === 404, {
      timeout: 20_000,
    });
  });

  test('empties and removes a deleted namespace', async () => {
    const admin = as('admin');
    const name = `${namespace}-gone`;
    await ensureNamespace(admin, name);
    const path = `/api/v1/namespaces/${name}`;
    expect((await callApi(admin, path, { method: 'DELETE' })).status).toBe(200);
    const gone = async (): Promise<boolean> => (await callApi(admin, path)).status === 404;
    await vi.waitUntil(gone, { timeout: 20_000, interval: 100 });
  });
});

describe('applying manifests', () => {
  test('creates the namespaces that they name, and can be repeated', async () => {
    const text = `
apiVersion: v1
kind: ConfigMap
metadata: { name: one, namespace: ${namespace}-applied }
data: { key: value }
---
# nothing here
---
apiVersion: v1
kind: Secret
metadata: { name: two, namespace: ${namespace}-applied }
`;
    await applyManifests(as('admin'), text);
    await applyManifests(as('admin'), text);
    const read = await callApi(as('admin'), `/api/v1/namespaces/${namespace}-applied/configmaps/one`);
    expect(read).toMatchObject({ status: 200, body: { data: { key: 'value' } } });
  });

  test("fails with the server's own words", async () => {
    const bad = `{ apiVersion: v1, kind: ConfigMap, metadata: { name: Bad_Name, namespace: ${namespace} } }`;
    await expect(applyManifests(as('admin'), bad)).rejects.toThrow(/Bad_Name was refused: 422 .*RFC 1123/u);
  });
});

describe('the emulators', () => {
  test('Firestore stores a document and gives it back', async () => {
    const [host = '', port = ''] = emulators.firestore.split(':');
    const firestore = new Firestore({ projectId: namespace, host, port: Number(port), ssl: false });
    const document = firestore.collection('samples').doc(randomUUID());
    await document.create({ count: 1 });
    expect((await document.get()).data()).toEqual({ count: 1 });
    await firestore.terminate();
  });

  test('Pub/Sub delivers what was published', async () => {
    const pubsub = new PubSub({ projectId: namespace, apiEndpoint: emulators.pubsub, emulatorMode: true });
    const [topic] = await pubsub.createTopic('samples');
    const [subscription] = await topic.createSubscription('samples');
    const received = new Promise<string>((resolve) => {
      subscription.once('message', (message: { data: Buffer; ack(): void }) => {
        message.ack();
        resolve(message.data.toString());
      });
    });
    await topic.publishMessage({ data: Buffer.from('hello') });
    expect(await received).toBe('hello');
    await subscription.close();
    await pubsub.close();
  });
});

/** Processes, zombies apart, whose command line has this text. */
const processesWith = (text: string): readonly string[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/u.test(name))
    .flatMap((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
        return line.includes(text) ? [`${pid} ${line}`] : [];
      } catch {
        return [];
      }
    });

describe('services that run beside those of the others', () => {
  test('start, serve and stop by themselves, and leave no process', async () => {
    const services = await startTogether([
      startControlPlane({ runDir, users: [{ name: 'reader', groups: ['readers'] }], log: console.log }),
      startFirestoreEmulator({ runDir, heapMiB: 256 }),
      startPubsubEmulator({ runDir, heapMiB: 256 }),
    ]);
    const [plane, firestore, pubsub] = services;
    const marks = [runDir, `--port=${firestore.host.split(':')[1]}`, `--port=${pubsub.host.split(':')[1]}`];
    expect(marks.map((mark) => processesWith(mark).length > 0)).toEqual([true, true, true]);
    expect(plane.server).not.toBe(cluster.server);
    const file = await plane.kubeconfigFor('reader');
    const config = new KubeConfig();
    config.loadFromFile(file);
    await expect(config.makeApiClient(CoreV1Api).listNamespace()).rejects.toMatchObject({ code: 403 });
    await expect(plane.kubeconfigFor('nobody')).rejects.toThrow('without a user nobody');
    await stopTogether(services);
    expect(marks.flatMap(processesWith)).toEqual([]);
  });

  test('leave no process when one of them cannot start', async () => {
    const broken = startTogether([
      startPubsubEmulator({ runDir: join(runDir, 'missing') }),
      startControlPlane({ runDir, users: [], log: console.log }),
    ]);
    await expect(broken).rejects.toThrow('ENOENT');
    expect(processesWith(runDir)).toEqual([]);
  });
});
