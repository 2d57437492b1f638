/** provision on a real API server, the emulators and the Compute stand-in; calls come as Pub/Sub pushes. */

import { randomBytes } from 'node:crypto';

import { inject } from 'vitest';

import { makeHandler, type HandlerParts } from '../../../functions/provision/handler.ts';
import { openStores } from '../../../functions/provision/wiring.ts';
import { systemClock as clock } from '#shared/app/clock.ts';
import type { HttpReply } from '#shared/app/http.ts';
import { systemIds as ids } from '#shared/app/ids.ts';
import { makeLog } from '#shared/app/log.ts';
import { noMetrics } from '#shared/app/metrics.ts';
import type { MachineProvider } from '#shared/domain/machine.ts';
import type { ProxyRecord } from '#shared/domain/record.ts';
import type { VerdictState } from '#shared/domain/verdict.ts';
import { closeFirestore, openFirestore } from '#shared/firestore/client.ts';
import { openCluster, type ProxyObject } from '#shared/kubernetes/cluster.ts';
import { openPublisher } from '#shared/pubsub/publisher.ts';
import { callApi } from '#test/services/api.ts';

import { startCompute } from '../compute-fixture.ts';
import { api, createProxy, mergePatch, proxyPath, randomNamespace, stored } from '../proxies.ts';

const RBAC = '/apis/rbac.authorization.k8s.io/v1/namespaces';

/** The role that the manifests give provision in its namespaces; `secrets` false: without the right to read Secrets. */
const bindRole = async (namespace: string, secrets: boolean): Promise<void> => {
  const rules = [
    { apiGroups: ['crawl.example.com'], resources: ['proxies', 'proxies/status'], verbs: ['get', 'patch'] },
  ];
  const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata: { name: 'few' }, rules };
  if (!secrets) await callApi(api(), `${RBAC}/${namespace}/roles`, { method: 'POST', body: role });
  const answer = await callApi(api(), `${RBAC}/${namespace}/rolebindings`, {
    method: 'POST',
    body: {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name: 'provision' },
      roleRef: {
        apiGroup: 'rbac.authorization.k8s.io',
        kind: secrets ? 'ClusterRole' : 'Role',
        name: secrets ? 'egress-proxies-provision' : 'few',
      },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'provision' }],
    },
  });
  if (answer.status >= 300) throw new Error(JSON.stringify(answer.body));
};

const createTopic = async (projectId: string, topic: string): Promise<void> => {
  const { pubsub } = inject('emulators');
  const answer = await fetch(`http://${pubsub}/v1/projects/${projectId}/topics/${topic}`, { method: 'PUT' });
  if (!answer.ok) throw new Error(await answer.text());
};

const envelope = (message: object): Uint8Array =>
  new TextEncoder().encode(
    JSON.stringify({
      message: { data: Buffer.from(JSON.stringify(message)).toString('base64'), messageId: '1' },
      subscription: 's',
    }),
  );

export interface Provision {
  readonly namespace: string;
  readonly compute: Awaited<ReturnType<typeof startCompute>>;
  /** Log lines so far. */
  readonly lines: readonly string[];
  readonly probes: readonly string[];
  /** Pushes a change of this Proxy; `parts` differ from the usual ones for this call. */
  nudge(name: string, parts?: Partial<HandlerParts>): Promise<HttpReply>;
  post(body: Uint8Array): Promise<HttpReply>;
  apply(spec: unknown, name?: string): Promise<string>;
  edit(name: string, spec: unknown): Promise<void>;
  remove(name: string): Promise<void>;
  get(name: string): Promise<ProxyObject | undefined>;
  record(name: string): Promise<ProxyRecord | undefined>;
  /** As health would: a verdict on every published endpoint. */
  judge(name: string, state: VerdictState): Promise<void>;
  /** Everything that both databases hold of a Proxy, as text: first what everyone may read, then credentials. */
  documents(name: string): Promise<readonly [string, string]>;
  /** One lease on what serves, for `ms`; 0 ends it. */
  lease(name: string, ms: number): Promise<void>;
  readonly provider: MachineProvider;
  stop(): Promise<void>;
}

const openParts = async (namespace: string, compute: Provision['compute'], lines: string[]) => {
  const { projectId } = compute;
  const log = makeLog((line) => void lines.push(line));
  const cluster = openCluster(
    { kubeconfig: inject('cluster').kubeconfigs.provision },
    { clock, log, component: 'provision' },
  );
  const publisher = openPublisher({
    projectId,
    changesTopic: 'proxy-changes',
    probesTopic: 'proxy-probes',
  });
  await createTopic(projectId, 'proxy-changes');
  await createTopic(projectId, 'proxy-probes');
  const stores = openStores({
    projectId,
    databaseId: '(default)',
    credentialsDatabaseId: 'credentials',
  });
  const provider = compute.provider('prod');
  const parts: HandlerParts = {
    ...stores,
    cluster,
    publisher,
    providers: { gcp: provider },
    installation: 'prod',
    namespaces: [namespace],
    allowPrivateEndpoints: false,
    // Proxies that tests leave behind hold up no others.
    maxReplacingPercent: 100,
    clock,
    ids,
    log,
    metrics: noMetrics,
  };
  return { parts, provider, close: () => Promise.all([cluster.close(), publisher.close(), stores.close()]) };
};

const judgeRecord = (record: ProxyRecord, state: VerdictState): ProxyRecord => {
  const verdict = { state, since: clock.now(), checkedAt: clock.now(), exitAddress: '192.0.2.1' };
  const { serving, candidate, ...rest } = record;
  return {
    ...rest,
    ...(serving ? { serving: { ...serving, verdict } } : {}),
    ...(candidate ? { candidate: { ...candidate, verdict } } : {}),
  };
};

/** One namespace, one cloud, one project: nothing is shared with other tests. */
export const startProvision = async (
  options: { readonly secrets?: boolean; readonly addresses?: number } = {},
): Promise<Provision> => {
  const { firestore, pubsub } = inject('emulators');
  process.env['FIRESTORE_EMULATOR_HOST'] = firestore;
  process.env['PUBSUB_EMULATOR_HOST'] = pubsub;
  const namespace = await randomNamespace();
  await bindRole(namespace, options.secrets ?? true);
  const compute = await startCompute(options.addresses === undefined ? {} : { addresses: options.addresses });
  const lines: string[] = [];
  const { parts, provider, close } = await openParts(namespace, compute, lines);
  const db = openFirestore({ projectId: compute.projectId });
  const secretDb = openFirestore({ projectId: compute.projectId, databaseId: 'credentials' });
  const probes: string[] = [];
  const publisher: HandlerParts['publisher'] = {
    probe: async (message) => {
      await parts.publisher.probe(message);
      probes.push(message.uid);
    },
  };
  const get = (name: string) => parts.cluster.getProxy({ namespace, name });
  const uids = new Map<string, string>();
  const uidOf = (name: string): string => uids.get(name) ?? '';
  const read = (name: string) => parts.records.read(uidOf(name));
  return {
    namespace,
    compute,
    lines,
    probes,
    provider,
    get,
    post: (body) =>
      makeHandler({ ...parts, publisher })({
        method: 'POST',
        path: '/',
        query: new URLSearchParams(),
        headers: {},
        body,
      }),
    nudge: (name, change = {}) =>
      makeHandler({ ...parts, publisher, ...change })({
        method: 'POST',
        path: '/',
        query: new URLSearchParams(),
        headers: {},
        body: envelope({ namespace, name, uid: uidOf(name), reason: 'Test' }),
      }),
    apply: async (spec, name = `p-${randomBytes(4).toString('hex')}`) => {
      stored(await createProxy(namespace, spec, { name }));
      const proxy = await get(name);
      uids.set(name, proxy?.metadata.uid ?? '');
      return name;
    },
    edit: async (name, spec) => {
      stored(await mergePatch(proxyPath(namespace, name), { spec }));
    },
    remove: async (name) => {
      await callApi(api(), proxyPath(namespace, name), { method: 'DELETE' });
    },
    record: async (name) => (await read(name))?.record,
    judge: async (name, state) => {
      const found = await read(name);
      if (!found) throw new Error(`${name} has no record`);
      await parts.records.write(judgeRecord(found.record, state), found.version);
    },
    documents: async (name) => {
      const uid = uidOf(name);
      const [proxy, leases, credentials] = await Promise.all([
        db.collection('proxies').doc(uid).get(),
        db.collection('leases').doc(uid).get(),
        secretDb.collection('credentials').get(),
      ]);
      const secret = credentials.docs.map((doc) => [doc.id, doc.data()]);
      return [JSON.stringify([proxy.data(), leases.data()]), JSON.stringify(secret)];
    },
    lease: async (name, ms) => {
      const endpoint = (await read(name))?.record.serving?.endpoint ?? { id: 'none' };
      const lease = { id: 'l', endpoint, expiresAt: clock.now() + ms };
      const leases = db.collection('leases').doc(uidOf(name));
      await leases.update({ leases: JSON.stringify({ leases: ms > 0 ? { l: lease } : {} }) });
    },
    stop: async () => {
      await close();
      await Promise.all([closeFirestore(db), closeFirestore(secretDb)]);
      await compute.stop();
    },
  };
};

export const condition = (proxy: ProxyObject | undefined, type: string) =>
  proxy?.status?.conditions?.find((each) => each.type === type);

export const secretOf = async (
  { namespace }: Provision,
  name: string,
  data: Readonly<Record<string, string>>,
  labels: Readonly<Record<string, string>> = {},
): Promise<void> => {
  const answer = await callApi(
    api(),
    `/api/v1/namespaces/${namespace}/secrets/${name}?fieldManager=test&force=true`,
    {
      method: 'PATCH',
      contentType: 'application/apply-patch+yaml',
      body: { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace, labels }, stringData: data },
    },
  );
  if (answer.status >= 300) throw new Error(JSON.stringify(answer.body));
};
