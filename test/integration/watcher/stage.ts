/** A namespace, a topic and a subscription of a test's own, and watchers between them. */

import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { PubSub, type Message } from '@google-cloud/pubsub';
import { expect, inject, vi } from 'vitest';

import { systemClock } from '#shared/app/clock.ts';
import { systemIds } from '#shared/app/ids.ts';
import { makeLog } from '#shared/app/log.ts';
import { noMetrics } from '#shared/app/metrics.ts';
import { parseChange } from '#shared/app/push.ts';
import type { ChangeMessage } from '#shared/domain/message.ts';
import { labelsHash } from '#shared/domain/observed.ts';
import { openCluster, type Cluster, type ProxyObject } from '#shared/kubernetes/cluster.ts';
import { openPublisher } from '#shared/pubsub/publisher.ts';
import { applyObject } from '#test/services/api.ts';
import { kubeconfigOver } from '#test/services/link.ts';

import { makeWatcher, type WatcherPorts } from '../../../functions/watcher/handler.ts';
import type { WatchTimes } from '../../../functions/watcher/watch-loop.ts';
import {
  EXTERNAL,
  api,
  call,
  createProxy,
  mergePatch,
  proxyPath,
  randomName,
  randomNamespace,
  stored,
} from '../proxies.ts';
import type { Identity } from '../provided.ts';

export const INSTALLATION = 'test';
export const TOPIC = 'proxy-changes';

/** Production's, but for a watch that proves itself alive every second, and quicker retries. */
export const QUICK: WatchTimes = {
  timeoutSeconds: 1,
  silenceMs: 2500,
  relistMs: 60_000,
  retryMinMs: 50,
  retryMaxMs: 200,
};
/** A watch that neither ends nor is doubted during a test. */
export const PATIENT: WatchTimes = { ...QUICK, timeoutSeconds: 120, silenceMs: 130_000, relistMs: 600_000 };

const tools = { clock: systemClock, ids: systemIds, metrics: noMetrics };

/** An identity's kubeconfig with another way to the same server, in `folder`. */
export const kubeconfigVia = (folder: string, host: string, identity: Identity): string => {
  const { server, kubeconfigs } = inject('cluster');
  const file = join(folder, randomName('kubeconfig'));
  return kubeconfigOver({ host }, { kubeconfig: kubeconfigs[identity], server, file });
};

export const openAs = (identity: Identity, kubeconfig?: string): Cluster =>
  openCluster(
    { kubeconfig: kubeconfig ?? inject('cluster').kubeconfigs[identity] },
    { ...tools, log: makeLog(() => undefined), component: `test-${identity}` },
  );

/** What a RoleBinding of terraform/cluster/rbac.yaml does, for one more namespace. */
export const bindRole = async (namespace: string, identity: 'watcher' | 'provision'): Promise<void> => {
  await applyObject(api(), {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: identity, namespace },
    roleRef: {
      apiGroup: 'rbac.authorization.k8s.io',
      kind: 'ClusterRole',
      name: `egress-proxies-${identity}`,
    },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: identity }],
  });
};

const openInbox = async (projectId: string) => {
  const pubsub = new PubSub({ projectId, apiEndpoint: inject('emulators').pubsub, emulatorMode: true });
  const [topic] = await pubsub.createTopic(TOPIC);
  const [subscription] = await topic.createSubscription('inbox', { enableMessageOrdering: true });
  const messages: (ChangeMessage & { readonly orderingKey: string })[] = [];
  subscription.on('message', (message: Message) => {
    const change = parseChange(JSON.parse(message.data.toString()));
    if (change) messages.push({ ...change, orderingKey: message.orderingKey ?? '' });
    message.ack();
  });
  return {
    messages,
    async close(): Promise<void> {
      await subscription.close();
      await pubsub.close();
    },
  };
};

export interface StartOptions {
  /** `host:port` through which the API server is reached; default direct. */
  readonly apiHost?: string;
  /** Another way to be somebody; default the watcher's own token. */
  readonly kubeconfig?: string;
  /** `host:port` through which Pub/Sub is reached; default direct. */
  readonly pubsubHost?: string;
  readonly times?: WatchTimes;
  readonly namespaces?: readonly string[];
  readonly pods?: boolean;
  readonly cluster?: (cluster: Cluster) => WatcherPorts['cluster'];
}

export interface RunningWatcher {
  readonly watcher: ReturnType<typeof makeWatcher>;
  readonly lines: readonly string[];
  readonly ready: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

const status = async (watcher: ReturnType<typeof makeWatcher>, path: string): Promise<number> => {
  const request = { method: 'GET', path, query: new URLSearchParams(), headers: {}, body: new Uint8Array() };
  return (await watcher.http(request)).status;
};

export type Stage = Awaited<ReturnType<typeof openStage>>;

export const openStage = async () => {
  const namespace = await randomNamespace();
  await bindRole(namespace, 'watcher');
  const projectId = `t${randomBytes(6).toString('hex')}`;
  const inbox = await openInbox(projectId);
  const admin = openAs('admin');
  const folder = mkdtempSync(join(tmpdir(), 'watcher-test-'));
  const running = new Set<RunningWatcher>();

  const get = async (name: string): Promise<ProxyObject> => {
    const proxy = await admin.getProxy({ namespace, name });
    if (!proxy) throw new Error(`there is no Proxy ${name}`);
    return proxy;
  };

  const reasons = (name: string): readonly string[] =>
    inbox.messages.filter((message) => message.name === name).map(({ reason }) => reason);

  const start = async (options: StartOptions = {}): Promise<RunningWatcher> => {
    const lines: string[] = [];
    const via = options.kubeconfig ?? (options.apiHost && kubeconfigVia(folder, options.apiHost, 'watcher'));
    const cluster = openAs('watcher', via);
    vi.stubEnv('PUBSUB_EMULATOR_HOST', options.pubsubHost ?? inject('emulators').pubsub);
    const publisher = openPublisher({ projectId, changesTopic: TOPIC, deadlineMs: 1000 });
    vi.unstubAllEnvs();
    const watcher = makeWatcher({
      ...tools,
      log: makeLog((line) => lines.push(line)),
      cluster: options.cluster?.(cluster) ?? cluster,
      publisher,
      installation: INSTALLATION,
      namespaces: options.namespaces ?? [namespace],
      pods: options.pods ?? false,
      times: options.times ?? PATIENT,
      secretsEveryMs: 200,
    });
    const end = new AbortController();
    const run = watcher.run(end.signal);
    const self: RunningWatcher = {
      watcher,
      lines,
      ready: () =>
        vi
          .waitUntil(async () => (await status(watcher, '/ready')) === 200, { timeout: 20_000 })
          .then(() => undefined),
      async stop() {
        running.delete(self);
        end.abort();
        await run;
        await publisher.close();
        await cluster.close();
      },
    };
    running.add(self);
    await self.ready();
    return self;
  };

  return {
    namespace,
    projectId,
    /** For files of a test; gone at the end. */
    folder,
    admin,
    get,
    /** Why each message for this Proxy was sent, in order. */
    reasons,
    messages: inbox.messages,

    async create(spec: object = {}, name = randomName('p')): Promise<ProxyObject> {
      stored(await createProxy(namespace, { ...EXTERNAL, ...spec }, { name }));
      return get(name);
    },

    /** What provision does at the end of a pass: finalizer, then a status that covers what was read. */
    async dealWith(name: string, secretVersions: Readonly<Record<string, string>> = {}): Promise<void> {
      const proxy = await admin.setFinalizers(await get(name), ['crawl.example.com/proxy']);
      const { generation, labels } = proxy.metadata;
      await admin.patchStatus(proxy, {
        ...proxy.status,
        installation: INSTALLATION,
        observed: { generation, labelsHash: labelsHash(labels), secretVersions },
      });
    },

    /** Waits for exactly these messages, in this order. */
    forwarded: (name: string, ...expected: readonly string[]): Promise<void> =>
      vi.waitFor(() => expect(reasons(name)).toEqual(expected), { timeout: 30_000, interval: 50 }),

    async edit(name: string, change: object): Promise<void> {
      stored(await mergePatch(proxyPath(namespace, name), change));
    },

    async remove(name: string): Promise<void> {
      expect((await call(proxyPath(namespace, name), { method: 'DELETE' })).status).toBe(200);
    },

    /** Runs a watcher as long as `work` takes. */
    async withWatcher(
      work: (watcher: RunningWatcher) => Promise<void>,
      options: StartOptions = {},
    ): Promise<void> {
      const watcher = await start(options);
      try {
        await work(watcher);
      } finally {
        await watcher.stop();
      }
    },

    /**
     * Resolves when everything that the watcher saw until now has been published: events come in order, so that the message
     * for a Proxy that was created last comes last.
     */
    async caughtUp(): Promise<void> {
      const marker = randomName('marker');
      stored(await createProxy(namespace, EXTERNAL, { name: marker }));
      await vi.waitUntil(() => inbox.messages.some(({ name }) => name === marker), { timeout: 30_000 });
    },

    async close(): Promise<void> {
      await Promise.all([...running].map((watcher) => watcher.stop()));
      await Promise.all([inbox.close(), admin.close()]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
};
