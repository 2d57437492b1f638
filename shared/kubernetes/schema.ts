/** Answers of the API server, checked where decisions rest on them. */

import { z } from 'zod';

import { SystemError } from '#shared/app/errors.ts';

import { PROXY_RESOURCE, type Proxy, type ProxySpec, type ProxyStatus } from './proxy.gen.ts';
import { jsonOf } from './failure.ts';

/** A Proxy as the cluster holds it now. */
export type ProxyObject = Proxy;

const isObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const metadata = z.object({
  name: z.string().min(1),
  namespace: z.string().min(1),
  uid: z.string().min(1),
  resourceVersion: z.string().min(1),
  generation: z.number().int(),
  creationTimestamp: z.string(),
  deletionTimestamp: z.string().exactOptional(),
  labels: z.record(z.string(), z.string()).exactOptional(),
  annotations: z.record(z.string(), z.string()).exactOptional(),
  finalizers: z.array(z.string()).exactOptional(),
});

const identity = {
  apiVersion: z.literal(`${PROXY_RESOURCE.group}/${PROXY_RESOURCE.version}`),
  kind: z.literal(PROXY_RESOURCE.kind),
  metadata,
};

/** Spec and status were validated by the API server against the schema that the types are generated from. */
export const proxySchema: z.ZodType<ProxyObject> = z.object({
  ...identity,
  spec: z.custom<ProxySpec>(isObject, 'must be an object'),
  status: z.custom<ProxyStatus>(isObject, 'must be an object').exactOptional(),
});

/**
 * A Proxy of a list or a watch. One that was stored under another schema is there all the same, and hides no other: whoever
 * works on it reads it by itself, and says what is wrong with it.
 */
export const listedProxySchema: z.ZodType<ProxyObject> = z.object({
  ...identity,
  spec: z.custom<ProxySpec>(isObject).catch({}),
  status: z.custom<ProxyStatus>(isObject).catch({}).exactOptional(),
});

/** One page. Its items are complete objects or the page is refused: a part of a list is never taken for the whole. */
export const proxyPageSchema = z.object({
  kind: z.literal(`${PROXY_RESOURCE.kind}List`),
  metadata: z.object({ resourceVersion: z.string().min(1), continue: z.string().default('') }),
  items: z.array(listedProxySchema),
});

export const secretSchema = z.object({
  kind: z.literal('Secret'),
  metadata: z.object({
    resourceVersion: z.string().min(1),
    labels: z.record(z.string(), z.string()).default({}),
  }),
  data: z.record(z.string(), z.base64()).default({}),
});

export const namespaceSchema = z.object({
  kind: z.literal('Namespace'),
  metadata: z.object({ uid: z.string().min(1) }),
});

/** Parses a 2xx body. Throws `Transient` for anything that is not what was asked for; the body is not quoted. */
export const parseReply = <T>(what: string, schema: z.ZodType<T>, text: string): T => {
  const result = schema.safeParse(jsonOf(text));
  if (result.success) return result.data;
  const where = result.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).slice(0, 5);
  throw new SystemError('Transient', `Kubernetes: ${what} was answered unreadably (${where.join('; ')})`);
};
