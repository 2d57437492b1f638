/** The only way to the cluster. */

import { clusterOn, type Cluster, type ClusterContext } from './api.ts';
import type { ClusterOptions } from './configuration.ts';
import { openConnection } from './connection.ts';

export type { Cluster, ClusterContext, ProxyListing, ProxyWatchEvent } from './api.ts';
export type { ClusterOptions } from './configuration.ts';
export type { EventSubject, ProxyEvent } from './events.ts';
export { clusterOptions } from './options.ts';
export type { PodObject } from './pods/schema.ts';
export type { ObjectName } from './proxies.ts';
export type { ProxyStatus } from './proxy.gen.ts';
export type { ProxyObject } from './schema.ts';
export type { SecretReading } from './secrets.ts';
export type { ObjectSource } from './source.ts';
export type { WatchEvent, WatchOptions } from './watch.ts';

/** Opens nothing until the first call. Throws `NotConfigured` for a configuration that can never work. */
export const openCluster = (options: ClusterOptions, context: ClusterContext): Cluster =>
  clusterOn(openConnection(options, context.component), context);
