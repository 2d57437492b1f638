/** provision with Pods as machines: the real API server, and a kubelet whose Pods are real proxies. */

import { z } from 'zod';

import type { HttpReply } from '#shared/app/http.ts';
import type { MachineProvider } from '#shared/domain/machine.ts';
import { callApi } from '#test/services/api.ts';

import { startPods, type PodFixture } from '../pods/fixture.ts';
import { api } from '../proxies.ts';
import { startProvision, type Provision } from './fixture.ts';

const listSchema = z.object({
  items: z.array(z.object({ metadata: z.object({ name: z.string(), uid: z.string() }) })),
});

export interface PodName {
  readonly name: string;
  readonly uid: string;
}

export interface PodWorld {
  readonly provision: Provision;
  readonly pods: PodFixture;
  readonly provider: MachineProvider;
  /** One call of provision, which works and waits for so long at most. Milliseconds, default 60,000. */
  nudge(name: string, budgetMs?: number): Promise<HttpReply>;
  /** The Pods of a Proxy, as the API server has them. */
  podsOf(name: string): Promise<readonly PodName[]>;
  /** Its only one. */
  podOf(name: string): Promise<PodName>;
  /** Deletes the Proxy and sees it through. Throws when it is still there. */
  removed(name: string): Promise<void>;
  /** Path of a collection or an object in the namespace. */
  path(collection: string): string;
  stop(): Promise<void>;
}

export const startPodWorld = async (): Promise<PodWorld> => {
  const provision = await startProvision();
  const pods = await startPods(provision.namespace);
  const provider = pods.provider('prod');
  const path = (collection: string): string => `/api/v1/namespaces/${provision.namespace}/${collection}`;
  const nudge = (name: string, budgetMs = 60_000) =>
    provision.nudge(name, { providers: { kubernetes: provider }, limits: { budgetMs } });
  const podsOf = async (name: string) => {
    const uid = (await provision.record(name))?.ref.uid ?? '';
    const answer = await callApi(api(), path(`pods?labelSelector=egress-proxy-uid%3D${uid}`));
    return listSchema.parse(answer.body).items.map(({ metadata }) => metadata);
  };
  return {
    provision,
    pods,
    provider,
    nudge,
    podsOf,
    podOf: async (name) => {
      const [pod, ...others] = await podsOf(name);
      if (!pod || others.length > 0) throw new Error(`${name} has not exactly one Pod`);
      return pod;
    },
    removed: async (name) => {
      await provision.remove(name);
      await nudge(name);
      if (await provision.get(name)) throw new Error(`${name} is still there`);
    },
    path,
    stop: async () => {
      await pods.stop();
      await provision.stop();
    },
  };
};
