/** Reads and writes of Proxies. */

import type { Connection } from './connection.ts';
import { errorOfReply, saysAbsent, type ApiReply } from './failure.ts';
import { ALL_NAMESPACES, type Collection } from './pages.ts';
import { PROXY_RESOURCE, type ProxyStatus } from './proxy.gen.ts';
import { listedProxySchema, parseReply, proxyPageSchema, proxySchema, type ProxyObject } from './schema.ts';
import { statusPatch } from './status-patch.ts';

const BASE = `/apis/${PROXY_RESOURCE.group}/${PROXY_RESOURCE.version}`;

const proxiesPath = (namespace: string): string =>
  namespace === ALL_NAMESPACES
    ? `${BASE}/${PROXY_RESOURCE.plural}`
    : `${BASE}/namespaces/${encodeURIComponent(namespace)}/${PROXY_RESOURCE.plural}`;

export const PROXIES: Collection<ProxyObject> = {
  what: 'Proxies',
  path: proxiesPath,
  object: listedProxySchema,
  page: proxyPageSchema,
};

const proxyPath = (namespace: string, name: string): string =>
  `${proxiesPath(namespace)}/${encodeURIComponent(name)}`;

const succeeded = (reply: ApiReply): boolean => reply.status >= 200 && reply.status < 300;

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
