/** What a kubelet asks of the API server: Pods as they are, their status, their Secrets, their end. */

import { z } from 'zod';

import type { PodObject } from '#shared/kubernetes/cluster.ts';
import { openConnection } from '#shared/kubernetes/connection.ts';
import { sourceOf, type ObjectSource } from '#shared/kubernetes/source.ts';
import { podSchema, podsPath } from '#shared/kubernetes/pods/schema.ts';
import { callApi, type ApiAddress, type ApiAnswer } from '#test/services/api.ts';

/** A Pod with the part of its spec that is carried out. */
export const wholePodSchema = podSchema.extend({
  spec: podSchema.shape.spec.extend({
    nodeName: z.string().optional(),
    containers: z.array(
      z.object({
        name: z.string(),
        image: z.string(),
        ports: z.array(z.object({ containerPort: z.number() })).default([]),
      }),
    ),
  }),
});
export type Pod = z.infer<typeof wholePodSchema>;

const podPageSchema = z.object({
  metadata: z.object({ resourceVersion: z.string(), continue: z.string().default('') }),
  items: z.array(wholePodSchema),
});

export type PodName = Pick<PodObject['metadata'], 'namespace' | 'name' | 'uid'>;

const secretSchema = z.object({ data: z.record(z.string(), z.base64()).default({}) });

const NODE = 'stand-in';

export interface NodeCluster {
  readonly pods: ObjectSource<Pod>;
  /** Puts the Pod on this node; false when it is gone or somewhere already. */
  bind(pod: PodName): Promise<boolean>;
  /** Merge patch of the status; false when this very Pod is gone. */
  setStatus(pod: PodName, status: object): Promise<boolean>;
  /** What a Secret holds; undefined while there is none. */
  readSecret(namespace: string, name: string): Promise<Readonly<Record<string, string>> | undefined>;
  /** Takes the object away, as a kubelet does when everything of the Pod has ended. */
  remove(pod: PodName): Promise<void>;
  close(): Promise<void>;
}

const pathOf = ({ namespace, name }: PodName, subresource = ''): string =>
  `/api/v1/namespaces/${namespace}/pods/${name}${subresource}`;

/** True for success, false when what was asked for is not there (any more). Throws for anything else. */
const done = ({ status, body }: ApiAnswer): boolean => {
  if (status < 300) return true;
  if (status === 404 || status === 409) return false;
  throw new Error(`the API server answered ${status}: ${JSON.stringify(body)}`);
};

export const openNodeCluster = (api: ApiAddress, kubeconfig: string): NodeCluster => {
  const connection = openConnection({ kubeconfig }, 'kubelet-stand-in');
  return {
    pods: sourceOf(connection, {
      what: 'Pods',
      path: podsPath,
      object: wholePodSchema,
      page: podPageSchema,
    }),
    async bind(pod) {
      const target = { apiVersion: 'v1', kind: 'Node', name: NODE };
      const { name, uid } = pod;
      const body = { apiVersion: 'v1', kind: 'Binding', metadata: { name, uid }, target };
      return done(await callApi(api, pathOf(pod, '/binding'), { method: 'POST', body }));
    },
    async setStatus(pod, status) {
      return done(
        await callApi(api, pathOf(pod, '/status'), {
          method: 'PATCH',
          contentType: 'application/merge-patch+json',
          body: { metadata: { uid: pod.uid }, status },
        }),
      );
    },
    async readSecret(namespace, name) {
      const answer = await callApi(api, `/api/v1/namespaces/${namespace}/secrets/${name}`);
      if (!done(answer)) return undefined;
      return Object.fromEntries(
        Object.entries(secretSchema.parse(answer.body).data).map(([key, value]) => [
          key,
          Buffer.from(value, 'base64').toString(),
        ]),
      );
    },
    async remove(pod) {
      const body = { gracePeriodSeconds: 0, preconditions: { uid: pod.uid } };
      done(await callApi(api, pathOf(pod), { method: 'DELETE', body }));
    },
    close: () => connection.close(),
  };
};
