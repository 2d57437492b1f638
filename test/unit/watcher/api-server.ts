/** An API server over TLS that keeps Proxies and their history, remembers every request, and fails as it is told to. */

import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { FINALIZER } from '#shared/domain/proxy.ts';
import { labelsHash } from '#shared/domain/observed.ts';
import { makeAuthority, type Issued } from '#test/services/authority.ts';

import { INSTALLATION, uidOf } from './builders.ts';

/** Answers a request in place of the server. */
export type Fault = (response: ServerResponse) => void;
export type Verb = 'list' | 'watch';

interface Seen {
  readonly verb: Verb;
  readonly namespace: string;
  /** Monotonic milliseconds. */
  readonly at: number;
}

interface StoredProxy {
  readonly metadata: {
    readonly namespace: string;
    readonly name: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly generation: number;
    readonly [field: string]: unknown;
  };
  readonly [field: string]: unknown;
}

type Change = Readonly<Record<string, unknown>> & { readonly metadata?: Partial<StoredProxy['metadata']> };

interface Happening {
  readonly version: number;
  readonly type: string;
  readonly object: StoredProxy;
}

const NAMESPACE = 'crawlers';
const PATH = /^\/apis\/crawl\.example\.com\/v1alpha1\/namespaces\/([^/]+)\/proxies$/;

/** One that provision has dealt with. */
const converged = (name: string, uid: string, version: number): StoredProxy => ({
  apiVersion: 'crawl.example.com/v1alpha1',
  kind: 'Proxy',
  metadata: {
    namespace: NAMESPACE,
    name,
    uid,
    resourceVersion: String(version),
    generation: 1,
    creationTimestamp: '2026-01-01T00:00:00Z',
    finalizers: [FINALIZER],
  },
  spec: {},
  status: { installation: INSTALLATION, observed: { generation: 1, labelsHash: labelsHash(undefined) } },
});

const json = (response: ServerResponse, code: number, body: unknown): void => {
  response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body));
};

/** As `kubectl` would show it. */
export const refusal = (code: number, reason: string) => ({
  kind: 'Status',
  apiVersion: 'v1',
  status: 'Failure',
  code,
  reason,
  message: reason,
});

export const openApiServer = async () => {
  const folder = mkdtempSync(join(tmpdir(), 'api-server-'));
  const authority = await makeAuthority();
  const own = await authority.issue('127.0.0.1');
  const proxies = new Map<string, StoredProxy>();
  const history: Happening[] = [];
  const watches = new Map<ServerResponse, string>();
  const seen: Seen[] = [];
  const faults: Record<Verb, Fault[]> = { list: [], watch: [] };
  const refused = new Map<string, Fault[]>();
  let version = 100;
  let serial = 0;
  let mostWatches = 0;

  const inNamespace = (namespace: string) => (object: StoredProxy) => object.metadata.namespace === namespace;

  const list = (namespace: string, response: ServerResponse): void =>
    json(response, 200, {
      kind: 'ProxyList',
      metadata: { resourceVersion: String(version) },
      items: [...proxies.values()].filter(inNamespace(namespace)),
    });

  const tell = (response: ServerResponse, { type, object }: Happening): void => {
    response.write(`${JSON.stringify({ type, object })}\n`);
  };

  const watch = (namespace: string, from: number, response: ServerResponse): void => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    watches.set(response, namespace);
    mostWatches = Math.max(mostWatches, watches.size);
    response.once('close', () => watches.delete(response));
    const missed = history.filter((happening) => happening.version > from);
    for (const happening of missed) if (inNamespace(namespace)(happening.object)) tell(response, happening);
  };

  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'https://api');
    const namespace = PATH.exec(pathname)?.[1];
    if (namespace === undefined) return json(response, 404, refusal(404, 'NotFound'));
    const verb = searchParams.get('watch') === 'true' ? 'watch' : 'list';
    seen.push({ verb, namespace, at: performance.now() });
    const fault = refused.get(namespace)?.shift() ?? faults[verb].shift();
    if (fault) return fault(response);
    if (verb === 'list') return list(namespace, response);
    return watch(namespace, Number(searchParams.get('resourceVersion')), response);
  };

  const server = createServer({ cert: own.certPem, key: own.keyPem }, answer);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address: AddressInfo | string | null = server.address();
  if (!address || typeof address === 'string') throw new Error('the server has no port');

  const kubeconfig = join(folder, 'kubeconfig');
  const cluster = {
    server: `https://127.0.0.1:${address.port}`,
    'certificate-authority-data': Buffer.from(authority.caPem).toString('base64'),
  };
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      clusters: [{ name: 'c', cluster }],
      users: [{ name: 'u', user: { token: 't' } }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'x',
    }),
  );

  const happen = (type: string, object: StoredProxy, told: boolean): void => {
    history.push({ version, type, object });
    if (!told) return;
    for (const [response, namespace] of watches) {
      if (inNamespace(namespace)(object)) tell(response, { version, type, object });
    }
  };

  return {
    kubeconfig,
    /** What happens to the next requests, one each. */
    faults,
    /** The same for one namespace, whatever is asked about it. */
    refused,
    requests: (verb: Verb): readonly Seen[] => seen.filter((request) => request.verb === verb),
    watches: (): readonly ServerResponse[] => [...watches.keys()],
    mostWatches: () => mostWatches,

    /** Puts a Proxy there, changed from what provision has dealt with; `told` = to whoever watches. Returns its UID. */
    put(name: string, { metadata, ...change }: Change = {}, told = true): string {
      version += 1;
      const before = proxies.get(name);
      serial += 1;
      const fresh = converged(name, before?.metadata.uid ?? uidOf(serial), version);
      const object = { ...fresh, ...change, metadata: { ...fresh.metadata, ...metadata } };
      proxies.set(name, object);
      happen(before ? 'MODIFIED' : 'ADDED', object, told);
      return object.metadata.uid;
    },
    remove(name: string, told = true): void {
      const object = proxies.get(name);
      if (!object) throw new Error(`there is no Proxy ${name}`);
      version += 1;
      proxies.delete(name);
      happen(
        'DELETED',
        { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } },
        told,
      );
    },

    /** Ends every connection, so that all of them are made again; with a certificate, shows that from now on. */
    cut(shown?: Issued): void {
      if (shown) server.setSecureContext({ cert: shown.certPem, key: shown.keyPem });
      server.closeAllConnections();
    },
    own,
    async close(): Promise<void> {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
      rmSync(folder, { recursive: true, force: true });
    },
  };
};
export type ApiServer = Awaited<ReturnType<typeof openApiServer>>;
