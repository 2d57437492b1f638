/** A namespace with Pod rights, a kubelet for it, and Pod providers with the identity that has those rights. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

import { inject } from 'vitest';

import { systemClock as clock } from '#shared/app/clock.ts';
import { SystemError } from '#shared/app/errors.ts';
import { makeLog } from '#shared/app/log.ts';
import type { MachineProvider } from '#shared/domain/machine.ts';
import type { ProxyRef } from '#shared/domain/proxy.ts';
import { openConnection, type ApiRequest, type Connection } from '#shared/kubernetes/connection.ts';
import { openPodProvider } from '#shared/kubernetes/pods/provider.ts';
import { makeAddressAllocator } from '#test/compute/addresses.ts';
import { startKubelet, type Kubelet } from '#test/kubelet/kubelet.ts';
import { applyObject, parseManifests } from '#test/services/api.ts';
import { claimLoopbackRange } from '#test/services/ports.ts';

import type { Identity } from '../provided.ts';
import { KUBERNETES, api, createProxy, randomName, randomNamespace, stored } from '../proxies.ts';

const ROLES = join(import.meta.dirname, '../../../terraform/cluster/kubernetes-provider/rbac-pods.yaml');

/** The optional component, for one more namespace. */
export const grantPods = async (namespace: string): Promise<void> => {
  for (const manifest of parseManifests(await readFile(ROLES, 'utf8'))) {
    const { metadata } = manifest;
    await applyObject(
      api(),
      metadata.namespace ? { ...manifest, metadata: { ...metadata, namespace } } : manifest,
    );
  }
};

/** A way to the cluster whose next reply to a matching request is lost, or is another one. */
export interface Link extends Connection {
  loseNext(method: ApiRequest['method'], path: RegExp): void;
  answerNext(method: ApiRequest['method'], path: RegExp, status: number): void;
}

type Fault = { readonly method: string; readonly path: RegExp; readonly status?: number };

export const openLink = (identity: Identity): Link => {
  const connection = openConnection({ kubeconfig: inject('cluster').kubeconfigs[identity] }, 'test-pods');
  const faults: Fault[] = [];
  const take = ({ method, path }: ApiRequest): Fault | undefined => {
    const index = faults.findIndex((fault) => fault.method === method && fault.path.test(path));
    return index < 0 ? undefined : faults.splice(index, 1)[0];
  };
  return {
    ...connection,
    async send(request) {
      const fault = take(request);
      if (fault?.status !== undefined) return { status: fault.status, text: '' };
      const reply = await connection.send(request);
      if (fault) throw new SystemError('Transient', 'the reply was lost');
      return reply;
    },
    loseNext: (method, path) => void faults.push({ method, path }),
    answerNext: (method, path, status) => void faults.push({ method, path, status }),
  };
};

export interface PodFixture {
  readonly namespace: string;
  readonly kubelet: Kubelet;
  /** Problems of the product, as it logged them. */
  readonly lines: readonly string[];
  provider(installation: string, link?: Link): MachineProvider;
  /** A new Proxy to own Pods; without a finalizer. */
  owner(): Promise<ProxyRef>;
  stop(): Promise<void>;
}

/** In a namespace of its own, unless one is given. */
export const startPods = async (given?: string): Promise<PodFixture> => {
  const namespace = given ?? (await randomNamespace());
  await grantPods(namespace);
  const range = await claimLoopbackRange();
  const kubelet = await startKubelet({
    api: api(),
    kubeconfig: inject('cluster').kubeconfigs.admin,
    addresses: makeAddressAllocator(range),
    namespace,
    log: makeLog((line) => process.stderr.write(line)),
  });
  const opened: MachineProvider[] = [];
  const lines: string[] = [];
  return {
    namespace,
    kubelet,
    lines,
    provider(installation, link = openLink('provision')) {
      const log = makeLog((line) => lines.push(line));
      const provider = openPodProvider({ installation, namespaces: [namespace], clock, log }, link);
      opened.push(provider);
      return provider;
    },
    async owner() {
      const name = randomName('p');
      const { metadata } = stored(await createProxy(namespace, KUBERNETES, { name }));
      return { namespace, name, uid: String(metadata['uid']) };
    },
    async stop() {
      await kubelet.stop();
      await Promise.all(opened.map((provider) => provider.close()));
      await range.release();
    },
  };
};
