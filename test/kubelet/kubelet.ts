/**
 * A stand-in for scheduler and kubelet: it puts Pods on a node, runs a real forward proxy for each on a loopback address
 * of its own, says so in their status, and ends them gracefully. README.md beside this file documents its control API.
 */

import { createServer } from 'node:http';

import type { Log } from '#shared/app/log.ts';
import { pause } from '#shared/app/wait.ts';
import type { AddressAllocator } from '#test/compute/addresses.ts';
import { startForwardProxy, type ForwardProxy } from '#test/compute/forward-proxy.ts';
import type { ApiAddress } from '#test/services/api.ts';

import { openNodeCluster, type NodeCluster, type Pod } from './cluster.ts';
import { answerControl } from './control-http.ts';
import type { KubeletControl, PodView } from './control.ts';
import { makePodFaults, type PodFault, type PodFaults } from './faults.ts';
import * as statuses from './status.ts';

export interface KubeletOptions {
  /** With every right on Pods, and on the Secrets that they mount. */
  readonly api: ApiAddress;
  readonly kubeconfig: string;
  readonly addresses: AddressAllocator;
  /** Whose Pods are run; default `*`. */
  readonly namespace?: string;
  /** Milliseconds from a Pod's creation to its start, and from the end that was asked for to the end; default 50. */
  readonly delayMs?: number;
  readonly log: Log;
}

export interface Kubelet {
  readonly control: KubeletControl;
  /** Of the control API, `http://127.0.0.1:port/_control`. */
  readonly url: string;
  stop(): Promise<void>;
}

interface Running {
  pod: Pod;
  readonly started: Promise<void>;
  readonly ending: AbortController;
  address?: string;
  proxy?: ForwardProxy | undefined;
  files: Readonly<Record<string, string>>;
}

interface World {
  readonly options: KubeletOptions;
  readonly cluster: NodeCluster;
  readonly faults: PodFaults;
  readonly running: Map<string, Running>;
  readonly stopping: AbortSignal;
}

const POLL_MS = 50;

const endProxy = async ({ options }: World, entry: Running): Promise<void> => {
  const { proxy, address } = entry;
  delete entry.proxy;
  delete entry.address;
  await proxy?.stop();
  if (address !== undefined) options.addresses.release(address);
};

/** Waits while a fault holds this Pod back; false when the Pod is on its way out. */
const heldBack = async (world: World, entry: Running, kind: PodFault['kind'], status: object) => {
  const { signal } = entry.ending;
  const { name } = entry.pod.metadata;
  if (world.faults.has(kind, name)) await world.cluster.setStatus(entry.pod.metadata, status);
  while (world.faults.has(kind, name) && !signal.aborted) await pause(POLL_MS, signal);
  return !signal.aborted;
};

/** The files of its Secret, waited for as a kubelet waits for a volume. */
const mount = async ({ cluster }: World, { pod, ending }: Running): Promise<Record<string, string>> => {
  const name = pod.spec.volumes?.map(({ secret }) => secret?.secretName).find(Boolean);
  if (!name) return {};
  while (!ending.signal.aborted) {
    const files = await cluster.readSecret(pod.metadata.namespace, name);
    if (files) return files;
    await pause(POLL_MS, ending.signal);
  }
  return {};
};

const runProxy = async (world: World, entry: Running): Promise<void> => {
  const { pod, files } = entry;
  const address = world.options.addresses.next();
  entry.address = address;
  const { 'proxy-username': username, 'proxy-password': password } = files;
  entry.proxy = await startForwardProxy({
    host: address,
    port: pod.spec.containers[0]?.ports[0]?.containerPort ?? 3128,
    ...(username !== undefined && password !== undefined ? { credentials: { username, password } } : {}),
  });
  const ready = !world.faults.has('neverReady', pod.metadata.name);
  await world.cluster.setStatus(pod.metadata, statuses.running(pod, address, ready));
};

const start = async (world: World, entry: Running): Promise<void> => {
  const { pod, ending } = entry;
  await pause(world.options.delayMs ?? 50, ending.signal);
  if (!(await heldBack(world, entry, 'unschedulable', statuses.unschedulable()))) return;
  if (!pod.spec.nodeName && !(await world.cluster.bind(pod.metadata))) return;
  if (!(await heldBack(world, entry, 'imagePull', statuses.imagePullFailed(pod)))) return;
  entry.files = await mount(world, entry);
  if (!ending.signal.aborted) await runProxy(world, entry);
};

/** What is told to end ends gracefully: the proxy first, the object last. */
const terminate = async (world: World, entry: Running): Promise<void> => {
  const { name } = entry.pod.metadata;
  await entry.started;
  while (world.faults.has('stuckTerminating', name) && !world.stopping.aborted) {
    await pause(POLL_MS, world.stopping);
  }
  if (world.stopping.aborted) return;
  await pause(world.options.delayMs ?? 50, world.stopping);
  await endProxy(world, entry);
  await world.cluster.remove(entry.pod.metadata);
};

const inBackground = (world: World, what: string, work: Promise<void>): Promise<void> =>
  work.catch((error: unknown) => {
    if (!world.stopping.aborted) world.options.log.error(`the kubelet stand-in failed: ${what}`, error);
  });

const takeIn = (world: World, pod: Pod): Running => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const entry: Running = { pod, started: promise, ending: new AbortController(), files: {} };
  world.running.set(pod.metadata.uid, entry);
  void inBackground(world, `starting ${pod.metadata.name}`, start(world, entry)).then(resolve);
  return entry;
};

const changed = (world: World, pod: Pod): void => {
  const entry = world.running.get(pod.metadata.uid) ?? takeIn(world, pod);
  entry.pod = pod;
  if (!pod.metadata.deletionTimestamp || entry.ending.signal.aborted) return;
  entry.ending.abort();
  void inBackground(world, `ending ${pod.metadata.name}`, terminate(world, entry));
};

/** Gone without us, or because of us. */
const gone = (world: World, uid: string): void => {
  const entry = world.running.get(uid);
  if (!entry) return;
  world.running.delete(uid);
  entry.ending.abort();
  void inBackground(
    world,
    `clearing away ${entry.pod.metadata.name}`,
    entry.started.then(() => endProxy(world, entry)),
  );
};

const follow = async (world: World): Promise<void> => {
  const { cluster, options, stopping: signal } = world;
  const namespace = options.namespace ?? '*';
  const { items, resourceVersion } = await cluster.pods.list(namespace, signal);
  const listed = new Set(items.map(({ metadata }) => metadata.uid));
  for (const pod of items) changed(world, pod);
  for (const uid of world.running.keys()) if (!listed.has(uid)) gone(world, uid);
  const watch = { namespace, resourceVersion, signal, timeoutSeconds: 300, silenceMs: 310_000 };
  for await (const event of cluster.pods.watch(watch)) {
    if (event.kind === 'changed') changed(world, event.object);
    if (event.kind === 'deleted') gone(world, event.object.metadata.uid);
  }
};

const followAlways = async (world: World): Promise<void> => {
  while (!world.stopping.aborted) {
    await inBackground(world, 'following Pods', follow(world));
    await pause(POLL_MS, world.stopping);
  }
};

const viewOf = ({ pod, address, proxy, files }: Running): PodView => ({
  namespace: pod.metadata.namespace,
  name: pod.metadata.name,
  uid: pod.metadata.uid,
  ...(address === undefined ? {} : { address }),
  ...(proxy ? { port: proxy.port } : {}),
  listening: proxy !== undefined,
  files: Object.keys(files).sort(),
  requests: proxy?.requests() ?? 0,
});

const controlOf = (world: World): KubeletControl => {
  const { faults, running, cluster } = world;
  const find = (name: string): Running => {
    const entry = [...running.values()].find(({ pod }) => pod.metadata.name === name);
    if (!entry) throw new RangeError(`there is no Pod ${name} here`);
    return entry;
  };
  return {
    addFault: (fault) => faults.add(fault),
    removeFault: (id) => faults.remove(id),
    clearFaults: () => faults.clear(),
    faults: () => faults.list(),
    pods: () => [...running.values()].map(viewOf),
    async setReady(name, ready) {
      await cluster.setStatus(find(name).pod.metadata, statuses.readiness(ready));
    },
    async fail(
      name,
      { reason = 'Evicted', message = 'The node was low on memory.', keepAddress = false } = {},
    ) {
      const entry = find(name);
      await cluster.setStatus(entry.pod.metadata, statuses.failed(reason, message, keepAddress));
      await endProxy(world, entry);
    },
    async setProxyMode(name, mode) {
      const { proxy } = find(name);
      if (!proxy) throw new RangeError(`${name} does not listen`);
      await proxy.setMode(mode);
    },
  };
};

/** Runs Pods until it is stopped; then every proxy ends, and the objects stay as they are. */
export const startKubelet = async (options: KubeletOptions): Promise<Kubelet> => {
  const end = new AbortController();
  const world: World = {
    options,
    cluster: openNodeCluster(options.api, options.kubeconfig),
    faults: makePodFaults(),
    running: new Map(),
    stopping: end.signal,
  };
  const control = controlOf(world);
  const server = createServer((request, response) => void answerControl(control, request, response));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  const following = followAlways(world);
  return {
    control,
    url: `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}/_control`,
    async stop() {
      end.abort();
      await following;
      for (const entry of world.running.values()) entry.ending.abort();
      await Promise.all([...world.running.values()].map(({ started }) => started));
      await Promise.all([...world.running.values()].map((entry) => endProxy(world, entry)));
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
      await world.cluster.close();
    },
  };
};
