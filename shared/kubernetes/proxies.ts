/** Reads and writes of Proxies. */

import { SystemError } from '#shared/app/errors.ts';

import type { ApiReply, Connection } from './connection.ts';
import { errorOfReply, saysAbsent } from './failure.ts';
import { PROXY_RESOURCE, type ProxyStatus } from './proxy.gen.ts';
import { parseReply, proxyPageSchema, proxySchema, type ProxyObject } from './schema.ts';
import { statusPatch } from './status-patch.ts';

/** Every namespace of the cluster. */
export const ALL_NAMESPACES = '*';

const PAGE_SIZE = '500';

const BASE = `/apis/${PROXY_RESOURCE.group}/${PROXY_RESOURCE.version}`;

/** Path of the collection: one namespace's, or the cluster's for `*`. */
export const proxiesPath = (namespace: string): string =>
  namespace === ALL_NAMESPACES
    ? `${BASE}/${PROXY_RESOURCE.plural}`
    : `${BASE}/namespaces/${encodeURIComponent(namespace)}/${PROXY_RESOURCE.plural}`;

const proxyPath = (namespace: string, name: string): string =>
  `${proxiesPath(namespace)}/${encodeURIComponent(name)}`;

const succeeded = (reply: ApiReply): boolean => reply.status >= 200 && reply.status < 300;

/** All Proxies of one namespace, or of `*`, at one moment. */
export interface ProxyListing {
  readonly proxies: readonly ProxyObject[];
  /** Where a watch continues. */
  readonly resourceVersion: string;
}

export interface ObjectName {
  readonly namespace: string;
  readonly name: string;
}

export const getProxy = async (
  connection: Connection,
  { namespace, name }: ObjectName,
): Promise<ProxyObject | undefined> => {
  const what = `get of Proxy ${namespace}/${name}`;
  const reply = await connection.send({ method: 'GET', path: proxyPath(namespace, name) });
  if (saysAbsent(reply, name)) return undefined;
  if (!succeeded(reply)) throw errorOfReply(what, reply, name);
  return parseReply(what, proxySchema, reply.text);
};

/** Every page from the first to the last; undefined when the list grew too old on the way and has to begin again. */
const allPages = async (
  connection: Connection,
  namespace: string,
  signal?: AbortSignal,
): Promise<ProxyListing | undefined> => {
  const what = `list of Proxies in ${namespace}`;
  const proxies: ProxyObject[] = [];
  for (let token = ''; ;) {
    const reply = await connection.send({
      method: 'GET',
      path: proxiesPath(namespace),
      query: { limit: PAGE_SIZE, ...(token ? { continue: token } : {}) },
      ...(signal ? { signal } : {}),
    });
    if (reply.status === 410 && token) return undefined;
    if (!succeeded(reply)) throw errorOfReply(what, reply);
    const page = parseReply(what, proxyPageSchema, reply.text);
    proxies.push(...page.items);
    token = page.metadata.continue;
    if (!token) return { proxies, resourceVersion: page.metadata.resourceVersion };
  }
};

export const listNamespace = async (
  connection: Connection,
  namespace: string,
  signal?: AbortSignal,
): Promise<ProxyListing> => {
  const listing =
    (await allPages(connection, namespace, signal)) ?? (await allPages(connection, namespace, signal));
  if (!listing) throw new SystemError('Transient', `Kubernetes: the list of ${namespace} expired twice`);
  return listing;
};

const patch = async (
  connection: Connection,
  { metadata }: ProxyObject,
  subresource: '' | '/status',
  body: { readonly metadata?: object; readonly status?: object },
): Promise<ProxyObject> => {
  const { namespace, name, resourceVersion, uid } = metadata;
  const what = `patch of Proxy ${namespace}/${name}${subresource}`;
  const reply = await connection.send({
    method: 'PATCH',
    path: `${proxyPath(namespace, name)}${subresource}`,
    body: { ...body, metadata: { ...body.metadata, resourceVersion, uid } },
  });
  if (!succeeded(reply)) throw errorOfReply(what, reply, name);
  return parseReply(what, proxySchema, reply.text);
};

export const setFinalizers = (
  connection: Connection,
  proxy: ProxyObject,
  finalizers: readonly string[],
): Promise<ProxyObject> => patch(connection, proxy, '', { metadata: { finalizers } });

export const patchStatus = async (
  connection: Connection,
  proxy: ProxyObject,
  status: ProxyStatus,
): Promise<ProxyObject> => {
  const changes = statusPatch(proxy.status, status);
  return changes ? patch(connection, proxy, '/status', { status: changes }) : proxy;
};
