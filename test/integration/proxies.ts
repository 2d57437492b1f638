/** Proxies on the real API server, for tests of the resource itself. */

import { randomBytes } from 'node:crypto';
import { inject } from 'vitest';
import { z } from 'zod';
import { callApi, type ApiAddress, type ApiAnswer, type ApiCall } from '#test/services/api.ts';
import { ensureNamespace } from '#test/services/apply.ts';
import type { Identity } from './provided.ts';

export const GROUP_PATH = '/apis/crawl.example.com/v1alpha1';

export const EXTERNAL = { endpoint: { host: 'proxy.example.net', port: 3128 } };
export const GCP = {
  provider: 'gcp',
  gcp: {
    zones: ['europe-west1-b'],
    machineType: 'e2-micro',
    image: 'projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64',
  },
};
export const KUBERNETES = { provider: 'kubernetes', kubernetes: { image: 'registry.example.com/squid:1' } };

export const api = (identity: Identity = 'admin'): ApiAddress => {
  const { server, caFile, tokens } = inject('cluster');
  return { server, caFile, token: tokens[identity] };
};

export const randomName = (prefix: string): string => `${prefix}-${randomBytes(6).toString('hex')}`;

export const randomNamespace = async (): Promise<string> => {
  const name = randomName('crd');
  await ensureNamespace(api(), name);
  return name;
};

const anyObject = z.looseObject({});
const proxySchema = z.looseObject({
  metadata: z.looseObject({ name: z.string(), generation: z.number() }),
  spec: anyObject,
  status: anyObject.optional(),
});
export type StoredProxy = z.infer<typeof proxySchema>;

const refusalSchema = z.object({
  code: z.number(),
  message: z.string(),
  details: z
    .object({ causes: z.array(z.object({ message: z.string(), field: z.string().optional() })).optional() })
    .optional(),
});

/** The object that the server answered with; throws with its words when it refused. */
export const stored = ({ status, body }: ApiAnswer): StoredProxy => {
  if (status >= 300) throw new Error(`${status}: ${JSON.stringify(body)}`);
  return proxySchema.parse(body);
};

/** Why the server refused, as `field: message` for each cause; throws when it did not refuse. */
export const refusal = ({ status, body }: ApiAnswer): string[] => {
  if (status < 300) throw new Error(`not refused: ${JSON.stringify(body)}`);
  const { message, details } = refusalSchema.parse(body);
  if (!details?.causes) return [message];
  // Without a field it is the server's remark that rules are not evaluated on a malformed object.
  const reasons = details.causes.filter(({ field }) => field !== '<nil>');
  return reasons.map((cause) => `${cause.field}: ${cause.message}`);
};

export const proxyPath = (namespace: string, name = ''): string =>
  `${GROUP_PATH}/namespaces/${namespace}/proxies${name && `/${name}`}`;

export const createProxy = (
  namespace: string,
  spec: unknown,
  { name = randomName('p'), dryRun = false }: { name?: string; dryRun?: boolean } = {},
): Promise<ApiAnswer> =>
  callApi(api(), `${proxyPath(namespace)}?fieldValidation=Strict${dryRun ? '&dryRun=All' : ''}`, {
    method: 'POST',
    body: { apiVersion: 'crawl.example.com/v1alpha1', kind: 'Proxy', metadata: { name }, spec },
  });

/** A merge patch with strict field validation. `path` may end in `/status`. */
export const mergePatch = (path: string, body: unknown, identity: Identity = 'admin'): Promise<ApiAnswer> =>
  callApi(api(identity), `${path}?fieldValidation=Strict`, {
    method: 'PATCH',
    body,
    contentType: 'application/merge-patch+json',
  });

export const call = (path: string, options: ApiCall = {}, identity: Identity = 'admin'): Promise<ApiAnswer> =>
  callApi(api(identity), path, options);

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A JSON merge patch (RFC 7386) of an object. */
export const merged = (target: object, patch: object): Record<string, unknown> => {
  const result: Record<string, unknown> = { ...target };
  for (const [key, value] of Object.entries(patch)) {
    const before = result[key];
    if (value === null) delete result[key];
    else result[key] = isObject(value) ? merged(isObject(before) ? before : {}, value) : value;
  }
  return result;
};
