/** What is asked of the cluster, over whatever connection. Every error is a `SystemError`; every call but a watch ends within its deadline. */

import type { Clock } from '#shared/app/clock.ts';
import type { Log } from '#shared/app/log.ts';

import type { Connection } from './connection.ts';
import { recordEvent, type EventSubject, type ProxyEvent } from './events.ts';
import { errorOfReply } from './failure.ts';
import type { ProxyStatus } from './proxy.gen.ts';
import type { Listing } from './pages.ts';
import { machinePods, type PodObject } from './pods/schema.ts';
import { PROXIES, getProxy, patchStatus, setFinalizers, type ObjectName } from './proxies.ts';
import { namespaceSchema, parseReply, type ProxyObject } from './schema.ts';
import { readSecret, type SecretReading } from './secrets.ts';
import { sourceOf, type ObjectSource } from './source.ts';
import type { WatchEvent, WatchOptions } from './watch.ts';

export type ProxyListing = Listing<ProxyObject>;
export type ProxyWatchEvent = WatchEvent<ProxyObject>;

export interface ClusterContext {
  readonly clock: Clock;
  readonly log: Log;
  /** Who acts, as Events and the API server's audit log show it, for example `egress-proxies-provision`. */
  readonly component: string;
}

export interface Cluster {
  /** `undefined` only when the API server itself says that this object does not exist. */
  getProxy(name: ObjectName): Promise<ProxyObject | undefined>;
  /** `['*']` = all namespaces. Complete, or it throws. */
  listProxies(namespaces: readonly string[]): Promise<readonly ProxyObject[]>;
  /** One namespace, or `*`, with the version from which a watch continues. */
  listNamespace(namespace: string, signal?: AbortSignal): Promise<ProxyListing>;
  /** Events until the watch ends; see `WatchOptions`. Throws a `SystemError` when it broke. */
  watchProxies(options: WatchOptions): AsyncIterable<ProxyWatchEvent>;
  /** The Pods that are an installation's machines. */
  machinePods(installation: string): ObjectSource<PodObject>;
  /** Against the version that was read. Throws `Conflict` when it is not the newest, `NotFound` when the Proxy is gone. */
  setFinalizers(proxy: ProxyObject, finalizers: readonly string[]): Promise<ProxyObject>;
  /**
   * One patch that makes the status equal to `status`, fields that vanished removed; no call when it already is. Throws
   * `Conflict` when the Proxy changed since it was read, `NotFound` when it is gone, `InvalidSpec` when the schema refuses it.
   */
  patchStatus(proxy: ProxyObject, status: ProxyStatus): Promise<ProxyObject>;
  /** A refusal by the cluster is data (`unreadable`); an outage throws. */
  readSecret(namespace: string, name: string, signal?: AbortSignal): Promise<SecretReading>;
  /** Best effort: a failure is logged, never thrown. */
  recordEvent(proxy: EventSubject, event: ProxyEvent): Promise<void>;
  /** UID of the namespace kube-system, which tells clusters apart. */
  clusterId(): Promise<string>;
  close(): Promise<void>;
}

/** Opens nothing until the first call. */
export const clusterOn = (connection: Connection, context: ClusterContext): Cluster => {
  const proxies = sourceOf(connection, PROXIES);
  return {
    getProxy: (name) => getProxy(connection, name),
    async listProxies(namespaces) {
      const all: ProxyObject[] = [];
      for (const namespace of new Set(namespaces)) all.push(...(await proxies.list(namespace)).items);
      return all;
    },
    listNamespace: (namespace, signal) => proxies.list(namespace, signal),
    watchProxies: (watch) => proxies.watch(watch),
    machinePods: (installation) => sourceOf(connection, machinePods(installation)),
    setFinalizers: (proxy, finalizers) => setFinalizers(connection, proxy, finalizers),
    patchStatus: (proxy, status) => patchStatus(connection, proxy, status),
    readSecret: (namespace, name, signal) => readSecret(connection, namespace, name, signal),
    async recordEvent(proxy, event) {
      try {
        await recordEvent(connection, proxy, event, context);
      } catch (error) {
        const { namespace, name } = proxy.metadata;
        context.log.error('an Event could not be recorded', error, { namespace, name, reason: event.reason });
      }
    },
    async clusterId() {
      const what = 'get of namespace kube-system';
      const reply = await connection.send({ method: 'GET', path: '/api/v1/namespaces/kube-system' });
      if (reply.status !== 200) throw errorOfReply(what, reply, 'kube-system');
      return parseReply(what, namespaceSchema, reply.text).metadata.uid;
    },
    close: () => connection.close(),
  };
};
