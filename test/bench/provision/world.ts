/** One `provision` instance, the bundle that is deployed, between a real API server, the emulators and the Compute stand-in. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { PubSub } from '@google-cloud/pubsub';
import { z } from 'zod';

import { systemClock as clock } from '#shared/app/clock.ts';
import { makeLog } from '#shared/app/log.ts';
import { pause } from '#shared/app/wait.ts';
import type { ProxyRecord } from '#shared/domain/record.ts';
import type { VerdictState } from '#shared/domain/verdict.ts';
import { closeFirestore, openFirestore } from '#shared/firestore/client.ts';
import { recordStore } from '#shared/firestore/records.ts';
import { joinRanges, makeAddressAllocator } from '#test/compute/addresses.ts';
import { startComputeStandIn, type ComputeStandIn } from '#test/compute/stand-in.ts';
import { callApi, type ApiAddress } from '#test/services/api.ts';
import { ensureNamespace } from '#test/services/apply.ts';
import { startControlPlane } from '#test/services/control-plane.ts';
import { startFirestoreEmulator, startPubsubEmulator } from '#test/services/emulators.ts';
import { claimLoopbackRange, claimPort, type LoopbackRange } from '#test/services/ports.ts';
import { startTogether } from '#test/services/together.ts';
import { deploy, type Deployment } from '#test/stack/deployments.ts';
import { applyInstallation } from '#test/stack/identities.ts';
import { buildAll } from '#test/tools/build.ts';

import { openInspector, type Inspector } from './instance.ts';

export const PROJECT = 'bench-egress';
const NAMESPACE = 'bench';
const proxies = `/apis/crawl.example.com/v1alpha1/namespaces/${NAMESPACE}/proxies`;

export interface ProvisionWorld {
  readonly compute: ComputeStandIn;
  readonly provision: Deployment;
  readonly inspector: Inspector;
  readonly pubsub: PubSub;
  readonly topic: string;
  create(name: string, spec: object): Promise<string>;
  edit(name: string, spec: object): Promise<void>;
  remove(name: string): Promise<void>;
  isThere(name: string): Promise<boolean>;
  record(uid: string): Promise<ProxyRecord | undefined>;
  /** As health would: a verdict on every published endpoint. False: there was nothing to judge. */
  judge(uid: string, state: VerdictState): Promise<boolean>;
  /** A push, straight to the instance; resolves with the status. */
  push(name: string, uid: string, reason?: string): Promise<number>;
  stop(): Promise<void>;
}

export interface WorldOptions {
  readonly operationMs: number;
  readonly bootMs: number;
  /** Loopback ranges; a machine has two addresses, a range 253. */
  readonly ranges: number;
  /** How much of the fleet may be replaced at once, where that is not what is measured. */
  readonly maxReplacingPercent?: number;
}

export const gcp = (more: object = {}, gcpMore: object = {}): object => ({
  provider: 'gcp',
  drainTimeoutSeconds: 0,
  gcp: {
    zones: ['europe-west1-b', 'europe-west1-c'],
    machineType: 'e2-micro',
    image: 'projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64',
    ...gcpMore,
  },
  ...more,
});

export const changeOf = (name: string, uid: string, reason: string): object => ({
  namespace: NAMESPACE,
  name,
  uid,
  reason,
});

const judged = (record: ProxyRecord, state: VerdictState): ProxyRecord => {
  const verdict = { state, since: clock.now(), checkedAt: clock.now() };
  const { serving, candidate, ...rest } = record;
  return {
    ...rest,
    ...(serving ? { serving: { ...serving, verdict } } : {}),
    ...(candidate ? { candidate: { ...candidate, verdict } } : {}),
  };
};

const createdSchema = z.looseObject({ metadata: z.looseObject({ uid: z.string() }) });

const proxyCalls = (api: ApiAddress) => ({
  async create(name: string, spec: object): Promise<string> {
    const body = { apiVersion: 'crawl.example.com/v1alpha1', kind: 'Proxy', metadata: { name }, spec };
    const answer = await callApi(api, proxies, { method: 'POST', body });
    if (answer.status >= 300) throw new Error(JSON.stringify(answer.body));
    return createdSchema.parse(answer.body).metadata.uid;
  },
  async edit(name: string, spec: object): Promise<void> {
    const contentType = 'application/merge-patch+json';
    const answer = await callApi(api, `${proxies}/${name}`, { method: 'PATCH', body: { spec }, contentType });
    if (answer.status >= 300) throw new Error(JSON.stringify(answer.body));
  },
  async remove(name: string): Promise<void> {
    await callApi(api, `${proxies}/${name}`, { method: 'DELETE' });
  },
  isThere: async (name: string): Promise<boolean> =>
    (await callApi(api, `${proxies}/${name}`)).status === 200,
});

const startCompute = async (owner: AsyncDisposableStack, options: WorldOptions): Promise<ComputeStandIn> => {
  const ranges: LoopbackRange[] = [];
  while (ranges.length < options.ranges) {
    const range = await claimLoopbackRange();
    owner.defer(() => range.release());
    ranges.push(range);
  }
  const joined = joinRanges(ranges);
  const log = makeLog((line) => {
    if (line.includes('"ERROR"')) process.stderr.write(line);
  });
  const compute = await startComputeStandIn({
    projectId: PROJECT,
    addresses: makeAddressAllocator(joined, 1, joined.size),
    operationMs: options.operationMs,
    bootMs: options.bootMs,
    log,
  });
  owner.defer(() => compute.stop());
  return compute;
};

const startServices = async (owner: AsyncDisposableStack, runDir: string, options: WorldOptions) => {
  const [plane, firestore, pubsub] = await startTogether([
    startControlPlane({ runDir, users: [{ name: 'provision' }], log: () => undefined }),
    startFirestoreEmulator({ runDir }),
    startPubsubEmulator({ runDir }),
  ]);
  for (const service of [pubsub, firestore, plane]) owner.defer(() => service.stop());
  process.env['FIRESTORE_EMULATOR_HOST'] = firestore.host;
  process.env['PUBSUB_EMULATOR_HOST'] = pubsub.host;
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  const compute = await startCompute(owner, options);
  const api: ApiAddress = { server: plane.server, caFile: plane.caFile, token: plane.tokens['admin'] ?? '' };
  await applyInstallation(api);
  await ensureNamespace(api, NAMESPACE);
  const env = {
    GOOGLE_CLOUD_PROJECT: PROJECT,
    INSTALLATION_ID: 'bench',
    PROXY_NAMESPACES: '*',
    FIRESTORE_EMULATOR_HOST: firestore.host,
    PUBSUB_EMULATOR_HOST: pubsub.host,
    COMPUTE_ENDPOINT: compute.url,
    METADATA_SERVER_DETECTION: 'none',
    KUBECONFIG: await plane.kubeconfigFor('provision'),
    MAX_REPLACING_PERCENT: String(options.maxReplacingPercent ?? 25),
  };
  return { api, compute, env };
};

const TOPICS = ['proxy-changes', 'proxy-probes'] as const;

/** Starts everything, warm. */
export const startProvisionWorld = async (options: WorldOptions): Promise<ProvisionWorld> => {
  await using owner = new AsyncDisposableStack();
  const runDir = await mkdtemp(join(tmpdir(), 'egress-bench-'));
  owner.defer(() => rm(runDir, { recursive: true, force: true }));
  const [{ api, compute, env }] = await Promise.all([startServices(owner, runDir, options), buildAll()]);
  const pubsub = new PubSub({ projectId: PROJECT });
  owner.defer(() => pubsub.close());
  await Promise.all(TOPICS.map((topic) => pubsub.createTopic(topic)));
  const port = await claimPort();
  owner.defer(() => port.release());
  const provision = await deploy({
    name: 'provision',
    env: { ...env, NODE_OPTIONS: `--inspect=127.0.0.1:${port.port}` },
    runDir,
    log: (line) => process.stderr.write(`${line}\n`),
  });
  owner.defer(() => provision.stop());
  const inspector = await openInspector(port.port);
  owner.defer(() => inspector.close());
  const db = openFirestore({ projectId: PROJECT });
  owner.defer(() => closeFirestore(db));
  const records = recordStore(db);
  const kept = owner.move();
  return {
    ...proxyCalls(api),
    compute,
    provision,
    inspector,
    pubsub,
    topic: TOPICS[0],
    record: async (uid) => (await records.read(uid))?.record,
    async judge(uid, state) {
      for (;;) {
        const found = await records.read(uid);
        if (!found?.record.serving && !found?.record.candidate) return false;
        const written = await records
          .write(judged(found.record, state), found.version)
          .catch(() => undefined);
        if (written) return true;
        await pause(20);
      }
    },
    async push(name, uid, reason = 'Bench') {
      const data = Buffer.from(JSON.stringify(changeOf(name, uid, reason))).toString('base64');
      const answer = await fetch(`${provision.url}/`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ message: { data, messageId: '1' }, subscription: 'bench' }),
      });
      await answer.arrayBuffer();
      return answer.status;
    },
    stop: () => kept.disposeAsync(),
  };
};
