/** An API server of Kubernetes that does nothing but list Proxies, page by page, as large as they are in a cluster. */

import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import { join } from 'node:path';

import type { ProxyObject } from '#shared/kubernetes/cluster.ts';
import { makeAuthority } from '#test/services/authority.ts';

/** What every writer of an object leaves in it, bytes. */
const MANAGED_FIELDS = 2000;

const asStored = ({ metadata, ...proxy }: ProxyObject) => ({
  ...proxy,
  metadata: {
    ...metadata,
    managedFields: [{ manager: 'bench', fieldsV1: { text: 'f'.repeat(MANAGED_FIELDS) } }],
  },
});

const pageOf = (proxies: readonly ProxyObject[], query: URLSearchParams) => {
  const from = Number(query.get('continue') ?? 0);
  const until = from + Number(query.get('limit') ?? 500);
  return {
    apiVersion: 'crawl.example.com/v1alpha1',
    kind: 'ProxyList',
    metadata: { resourceVersion: '1', continue: until < proxies.length ? String(until) : '' },
    items: proxies.slice(from, until).map((proxy) => asStored(proxy)),
  };
};

const NAMESPACE = {
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: 'kube-system', uid: 'cluster-1' },
};

export interface ListingServer {
  readonly kubeconfig: string;
  stop(): Promise<void>;
}

/** Its kubeconfig is written into `folder`. */
export const startListingServer = async (
  folder: string,
  proxies: readonly ProxyObject[],
): Promise<ListingServer> => {
  const authority = await makeAuthority('Listing server');
  const { certPem: cert, keyPem: key } = await authority.issue('127.0.0.1');
  const server = createServer({ cert, key }, (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'https://cluster');
    request.resume();
    response.setHeader('content-type', 'application/json');
    const body = pathname.endsWith('/kube-system') ? NAMESPACE : pageOf(proxies, searchParams);
    response.end(JSON.stringify(body));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const kubeconfig = join(folder, 'listing.kubeconfig');
  const cluster = {
    server: `https://127.0.0.1:${port}`,
    'certificate-authority-data': Buffer.from(authority.caPem).toString('base64'),
  };
  const config = {
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user: { token: 't' } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
  await writeFile(kubeconfig, JSON.stringify(config));
  return {
    kubeconfig,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
};
