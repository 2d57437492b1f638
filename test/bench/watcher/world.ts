/** A real API server full of Proxies, a link to it that can be cut, and watchers whose messages are counted. */

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { systemClock } from '#shared/app/clock.ts';
import { systemIds } from '#shared/app/ids.ts';
import { makeLog } from '#shared/app/log.ts';
import { noMetrics } from '#shared/app/metrics.ts';
import { pause } from '#shared/app/wait.ts';
import { labelsHash } from '#shared/domain/observed.ts';
import { FINALIZER } from '#shared/domain/proxy.ts';
import { openCluster, type Cluster } from '#shared/kubernetes/cluster.ts';
import { kubeconfigOver, openLink, type Link } from '#test/services/link.ts';
import { callApi, type ApiAddress, type ApiCall } from '#test/services/api.ts';
import { applyFile, ensureNamespace } from '#test/services/apply.ts';
import { startControlPlane } from '#test/services/control-plane.ts';

import { makeWatcher, type WatcherPorts } from '../../../functions/watcher/handler.ts';
import type { WatchTimes } from '../../../functions/watcher/watch-loop.ts';
import { eachOf } from '../leases/world.ts';

const ROOT = join(import.meta.dirname, '../../..');
const INSTALLATION = 'bench';
const MARKER = 'marker-';
const tools = { clock: systemClock, ids: systemIds, log: makeLog(() => undefined), metrics: noMetrics };

/** A watch that neither ends nor is doubted by itself, and that comes back at once: reconnects are asked for. */
const TIMES: WatchTimes = {
  timeoutSeconds: 600,
  silenceMs: 700_000,
  relistMs: 3_600_000,
  retryMinMs: 5,
  retryMaxMs: 20,
};

const AT_ONCE = 16;
const PATIENCE_MS = 120_000;

export const until = async (what: string, isSo: () => boolean): Promise<void> => {
  const deadline = performance.now() + PATIENCE_MS;
  while (!isSo()) {
    if (performance.now() > deadline) throw new Error(`${what}: not within ${PATIENCE_MS / 1000} s`);
    await pause(5);
  }
};

export interface Watching {
  /** Messages of this watcher so far, those for markers left out. */
  sent(): number;
  sizes(): { readonly proxies: number; readonly secrets: number; readonly pending: number };
  /** Resolves when everything that has happened until now has been seen and published. */
  caughtUp(): Promise<void>;
  stop(): Promise<void>;
}

export interface WatcherWorld {
  readonly link: Link;
  /** A namespace with Proxies `p-0` to `p-<count - 1>`, each of them dealt with. */
  fill(namespace: string, count: number): Promise<void>;
  each(count: number, work: (name: string) => Promise<void>): Promise<void>;
  create(namespace: string, name: string): Promise<void>;
  edit(namespace: string, name: string, maxLeases: number): Promise<void>;
  remove(namespace: string, name: string): Promise<void>;
  /** What provision does at the end of a pass; `message` makes each status another one. */
  dealWith(namespace: string, name: string, message?: string): Promise<void>;
  watch(namespace: string, wrap?: (cluster: Cluster) => WatcherPorts['cluster']): Promise<Watching>;
  stop(): Promise<void>;
}

const condition = (message: string) => ({
  type: 'Ready',
  status: 'True' as const,
  reason: 'Ready',
  message,
  lastTransitionTime: '2026-01-01T00:00:00Z',
});

const path = (namespace: string, name = ''): string =>
  `/apis/crawl.example.com/v1alpha1/namespaces/${namespace}/proxies${name && `/${name}`}`;

const each = (count: number, work: (name: string) => Promise<void>): Promise<void> =>
  eachOf(count, AT_ONCE, (index) => work(`p-${index}`));

const dealWith = async (admin: Cluster, namespace: string, name: string, message = ''): Promise<void> => {
  const proxy = await admin.getProxy({ namespace, name });
  if (!proxy) throw new Error(`there is no Proxy ${name}`);
  const { generation, labels } = proxy.metadata;
  await admin.patchStatus(proxy, {
    installation: INSTALLATION,
    observed: { generation, labelsHash: labelsHash(labels), secretVersions: {} },
    conditions: [condition(message)],
  });
};

const apiOf = (address: ApiAddress, admin: Cluster) => {
  const request = async (to: string, call: ApiCall): Promise<void> => {
    const { status, body } = await callApi(address, to, call);
    if (status >= 300) throw new Error(`${to}: ${status} ${JSON.stringify(body).slice(0, 300)}`);
  };
  const make = (namespace: string, name: string, finalizers: readonly string[]): Promise<void> =>
    request(path(namespace), {
      method: 'POST',
      body: {
        apiVersion: 'crawl.example.com/v1alpha1',
        kind: 'Proxy',
        metadata: { name, finalizers },
        spec: { endpoint: { host: 'proxy.example.net', port: 3128 } },
      },
    });
  return {
    each,
    dealWith: (namespace: string, name: string, message?: string) =>
      dealWith(admin, namespace, name, message),
    create: (namespace: string, name: string) => make(namespace, name, []),
    edit: (namespace: string, name: string, maxLeases: number) =>
      request(path(namespace, name), {
        method: 'PATCH',
        body: { spec: { maxLeases } },
        contentType: 'application/merge-patch+json',
      }),
    remove: (namespace: string, name: string) => request(path(namespace, name), { method: 'DELETE' }),
    async fill(namespace: string, count: number): Promise<void> {
      await ensureNamespace(address, namespace);
      await each(count, async (name) => {
        await make(namespace, name, [FINALIZER]);
        await dealWith(admin, namespace, name);
      });
    },
  };
};

const startWatching = async (
  cluster: Cluster,
  namespace: string,
  api: Pick<WatcherWorld, 'create' | 'remove'>,
  wrap: (cluster: Cluster) => WatcherPorts['cluster'],
): Promise<Watching> => {
  const markers = new Set<string>();
  let sent = 0;
  const watcher = makeWatcher({
    ...tools,
    cluster: wrap(cluster),
    publisher: {
      change: ({ name }) => {
        if (name.startsWith(MARKER)) markers.delete(name);
        else sent += 1;
        return Promise.resolve();
      },
    },
    installation: INSTALLATION,
    namespaces: [namespace],
    pods: false,
    times: TIMES,
  });
  const end = new AbortController();
  const run = watcher.run(end.signal);
  const watching: Watching = {
    sent: () => sent,
    sizes: watcher.sizes,
    async caughtUp() {
      const marker = `${MARKER}${systemIds.token().slice(0, 12).toLowerCase()}`;
      markers.add(marker);
      await api.create(namespace, marker);
      await until('the watcher has caught up', () => !markers.has(marker));
      await api.remove(namespace, marker);
    },
    async stop() {
      end.abort();
      await run;
      await cluster.close();
    },
  };
  await watching.caughtUp();
  return watching;
};

export const startWatcherWorld = async (): Promise<WatcherWorld> => {
  const parent = join(ROOT, '.local/run');
  mkdirSync(parent, { recursive: true });
  const runDir = mkdtempSync(join(parent, 'bench-watcher-'));
  const plane = await startControlPlane({ runDir, users: [], log: () => undefined });
  const address = { server: plane.server, caFile: plane.caFile, token: plane.tokens['admin'] ?? '' };
  await applyFile(address, join(ROOT, 'crds/proxy.yaml'));
  const link = await openLink(new URL(plane.server).host);
  const viaLink = kubeconfigOver(link, {
    kubeconfig: plane.adminKubeconfig,
    server: plane.server,
    file: join(runDir, 'kubeconfig-link.yaml'),
  });
  const admin = openCluster({ kubeconfig: plane.adminKubeconfig }, { ...tools, component: 'bench' });
  const api = apiOf(address, admin);
  return {
    ...api,
    link,
    watch: (namespace, wrap = (cluster) => cluster) =>
      startWatching(
        openCluster({ kubeconfig: viaLink }, { ...tools, component: 'bench-watcher' }),
        namespace,
        api,
        wrap,
      ),
    async stop() {
      await Promise.allSettled([admin.close(), link.close()]);
      await plane.stop();
      rmSync(runDir, { recursive: true, force: true });
    },
  };
};
