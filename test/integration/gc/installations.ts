/** gc on real parts: Firestore's emulator, the API server as its own user, the real Compute client on a stand-in. */

import { randomBytes } from 'node:crypto';

import { inject } from 'vitest';
import { z } from 'zod';

import { systemClock } from '#shared/app/clock.ts';
import type { HttpReply, HttpRequest } from '#shared/app/http.ts';
import { systemIds } from '#shared/app/ids.ts';
import { makeLog } from '#shared/app/log.ts';
import { noMetrics } from '#shared/app/metrics.ts';
import { openComputeProvider } from '#shared/compute/provider.ts';
import type { MachineProvider } from '#shared/domain/machine.ts';
import type { ChangeMessage } from '#shared/domain/message.ts';
import type { Publisher } from '#shared/pubsub/publisher.ts';
import { machineName } from '#shared/domain/names.ts';
import { closeFirestore, openFirestore } from '#shared/firestore/client.ts';
import { recordStore, type RecordStore } from '#shared/firestore/records.ts';
import { openCluster } from '#shared/kubernetes/cluster.ts';
import { claimLoopbackRange } from '#test/services/ports.ts';
import { applyObject, callApi } from '#test/services/api.ts';
import { makeAddressAllocator } from '#test/compute/addresses.ts';
import { startComputeStandIn, type ComputeStandIn } from '#test/compute/stand-in.ts';

import { makeHandler } from '../../../functions/gc/handler.ts';
import { openStores } from '../../../functions/gc/wiring.ts';
import { parseConfig } from '#shared/app/config.ts';
import { configSchema, settingsOf } from '../../../functions/gc/config.ts';
import { api, proxyPath, randomName } from '../proxies.ts';

export const ZONE = 'europe-west1-b';
export const OTHER_ZONE = 'europe-west1-c';
const IMAGE = 'projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64';
export const MIN_AGE_MS = 600_000;
export const SIGHTING_GAP_MS = 120_000;

/** A project in the cloud that several installations share. */
export interface SharedProject {
  readonly projectId: string;
  readonly compute: ComputeStandIn;
  stop(): Promise<void>;
}

export const startProject = async (): Promise<SharedProject> => {
  process.env['FIRESTORE_EMULATOR_HOST'] = inject('emulators').firestore;
  const projectId = `t${randomBytes(6).toString('hex')}`;
  const range = await claimLoopbackRange();
  const compute = await startComputeStandIn({
    projectId,
    addresses: makeAddressAllocator(range),
    operationMs: 5,
    bootMs: 1,
    log: makeLog(() => undefined),
  });
  return {
    projectId,
    compute,
    stop: async () => {
      await compute.stop();
      await range.release();
    },
  };
};

export interface Installation {
  readonly id: string;
  readonly namespace: string;
  readonly provider: MachineProvider;
  readonly records: RecordStore;
  readonly nudges: ChangeMessage[];
  /** Moves this installation's clock. */
  advance(ms: number): void;
  /** Moves it on to this minute of an hour, where it may be already. */
  advanceToMinute(minute: number): void;
  gc(query?: string): Promise<HttpReply>;
  /** A Proxy in the cluster; returns its UID. */
  proxy(name: string, finalizers?: readonly string[]): Promise<string>;
  removeProxy(name: string): Promise<void>;
  /** A running machine for this UID, as provision makes it. Returns its name. */
  machine(uid: string, zone?: string): Promise<string>;
  /** Takes gc's rights in the namespace away. */
  revoke(): Promise<void>;
  /** Gives it the same rights in the whole cluster, and takes them away again. */
  bindEverywhere(): Promise<void>;
  unbindEverywhere(): Promise<void>;
  close(): Promise<void>;
}

/** A role of gc in this namespace, bound as an operator would. */
const bindRole = async (namespace: string): Promise<void> => {
  await applyObject(api(), { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  await applyObject(api(), {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: 'egress-proxies-gc', namespace },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'egress-proxies-gc' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'gc' }],
  });
};

const created = z.object({ metadata: z.object({ uid: z.string() }) });

const createProxy = async (
  namespace: string,
  name: string,
  finalizers: readonly string[],
): Promise<string> => {
  const { body } = await callApi(api(), proxyPath(namespace), {
    method: 'POST',
    body: {
      apiVersion: 'crawl.example.com/v1alpha1',
      kind: 'Proxy',
      metadata: { name, finalizers },
      spec: {
        provider: 'gcp',
        gcp: { zones: [ZONE], machineType: 'e2-micro', image: IMAGE },
      },
    },
  });
  return created.parse(body).metadata.uid;
};

const createMachine = async (
  provider: MachineProvider,
  installation: string,
  uid: string,
  zone: string,
): Promise<string> => {
  const name = machineName(installation, uid, 'abcdef01', 1);
  const operation = await provider.create(
    {
      ref: { namespace: 'crawlers', name: 'p', uid },
      name,
      hash: 'abcdef01',
      port: 3128,
      gcp: {
        machineType: 'e2-micro',
        image: IMAGE,
        subnetwork: 'default',
        externalIP: 'Ephemeral',
        provisioningModel: 'Standard',
      },
    },
    zone,
    systemIds.uuid(),
  );
  const result = await provider.wait(operation, AbortSignal.timeout(20_000));
  if (result.kind !== 'succeeded') throw new Error(`no machine: ${JSON.stringify(result)}`);
  return name;
};

const post = (query: string): HttpRequest => ({
  method: 'POST',
  path: '/',
  query: new URLSearchParams(query),
  headers: {},
  body: new Uint8Array(),
});

interface Options {
  readonly namespace?: string;
  /** Called beside the list of nudges. */
  readonly publish?: Publisher['change'];
}

/** One installation, usually with a namespace of its own. Its clock runs and can be moved forward. */
export const openInstallation = async (
  { projectId, compute }: Pick<SharedProject, 'projectId' | 'compute'>,
  id: string,
  { namespace = randomName('gc'), publish }: Options = {},
): Promise<Installation> => {
  await bindRole(namespace);
  let ahead = 0;
  const clock = { ...systemClock, now: () => systemClock.now() + ahead };
  const config = parseConfig(configSchema, {
    GOOGLE_CLOUD_PROJECT: projectId,
    INSTALLATION_ID: id,
    PROXY_NAMESPACES: namespace,
    GC_MIN_AGE_SECONDS: String(MIN_AGE_MS / 1000),
    GC_SIGHTING_GAP_SECONDS: String(SIGHTING_GAP_MS / 1000),
    COMPUTE_ENDPOINT: compute.url,
  });
  const tools = { clock, ids: systemIds, log: makeLog(() => undefined), metrics: noMetrics };
  const settings = settingsOf(config);
  const provider = openComputeProvider({ ...settings, ...tools });
  const cluster = openCluster(
    { kubeconfig: inject('cluster').kubeconfigs.gc },
    { ...tools, component: 'egress-proxies-gc' },
  );
  const stores = openStores(settings);
  const db = openFirestore({ projectId });
  const nudges: ChangeMessage[] = [];
  const publisher = {
    change: async (message: ChangeMessage, key?: string): Promise<void> => {
      await publish?.(message, key);
      nudges.push(message);
    },
  };
  const handler = makeHandler({
    ...settings,
    ...tools,
    ...stores,
    providers: [provider],
    publisher,
    cluster,
  });
  return {
    id,
    namespace,
    provider,
    records: recordStore(db),
    nudges,
    advance: (ms) => {
      ahead += ms;
    },
    advanceToMinute: (minute) => {
      const at = Math.floor(clock.now() / 60_000) % 60;
      ahead += ((minute - at + 60) % 60) * 60_000;
    },
    gc: (query = '') => handler(post(query)),
    proxy: (name, finalizers = []) => createProxy(namespace, name, finalizers),
    removeProxy: async (name) => {
      await callApi(api(), proxyPath(namespace, name), { method: 'DELETE' });
    },
    machine: (uid, zone = ZONE) => createMachine(provider, id, uid, zone),
    revoke: async () => {
      const path = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/rolebindings/egress-proxies-gc`;
      await callApi(api(), path, { method: 'DELETE' });
    },
    bindEverywhere: async () => {
      await applyObject(api(), {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRoleBinding',
        metadata: { name: namespace },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'egress-proxies-gc' },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'gc' }],
      });
    },
    unbindEverywhere: async () => {
      const path = `/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/${namespace}`;
      await callApi(api(), path, { method: 'DELETE' });
    },
    close: async () => {
      await Promise.all([provider.close(), cluster.close(), stores.close(), closeFirestore(db)]);
    },
  };
};
