/** Pods as the API server shows them, as far as a decision rests on them. */

import { z } from 'zod';

import { MACHINE_LABELS } from '#shared/domain/names.ts';

import { ALL_NAMESPACES, type Collection } from '../pages.ts';

const text = z.string().nullish();

const condition = z.object({
  type: z.string(),
  status: z.string(),
  reason: text,
  message: text,
  lastTransitionTime: text,
});

const containerStatus = z.object({
  restartCount: z.number().default(0),
  state: z
    .object({
      waiting: z.object({ reason: text, message: text }).nullish(),
      running: z.object({ startedAt: text }).nullish(),
      terminated: z.object({ exitCode: z.number().default(0), reason: text, message: text }).nullish(),
    })
    .nullish(),
});

const ownerReference = z.object({
  apiVersion: z.string(),
  kind: z.string(),
  name: z.string(),
  uid: z.string(),
  controller: z.boolean().nullish(),
});

export const podSchema = z.object({
  metadata: z.object({
    name: z.string().min(1),
    namespace: z.string().min(1),
    uid: z.string().min(1),
    resourceVersion: z.string().min(1),
    creationTimestamp: text,
    deletionTimestamp: text,
    labels: z.record(z.string(), z.string()).nullish(),
    annotations: z.record(z.string(), z.string()).nullish(),
    ownerReferences: z.array(ownerReference).nullish(),
  }),
  spec: z.object({
    volumes: z
      .array(z.object({ name: z.string(), secret: z.object({ secretName: text }).nullish() }))
      .nullish(),
  }),
  status: z
    .object({
      phase: text,
      reason: text,
      message: text,
      podIP: text,
      conditions: z.array(condition).nullish(),
      containerStatuses: z.array(containerStatus).nullish(),
    })
    .nullish(),
});
export type PodObject = z.output<typeof podSchema>;

/** One page. Its items are complete objects or the page is refused: a part of a list is never taken for the whole. */
const podPageSchema = z.object({
  kind: z.literal('PodList'),
  metadata: z.object({ resourceVersion: z.string().min(1), continue: z.string().default('') }),
  items: z.array(podSchema),
});

export const podsPath = (namespace: string): string =>
  namespace === ALL_NAMESPACES ? '/api/v1/pods' : `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`;

export const podPath = (namespace: string, name: string): string =>
  `${podsPath(namespace)}/${encodeURIComponent(name)}`;

/** The Pods that carry an installation's label. */
export const machinePods = (installation: string, uid?: string): Collection<PodObject> => ({
  what: 'Pods',
  path: podsPath,
  object: podSchema,
  page: podPageSchema,
  labelSelector: [
    `${MACHINE_LABELS.installation}=${installation}`,
    ...(uid === undefined ? [] : [`${MACHINE_LABELS.uid}=${uid}`]),
  ].join(','),
});
