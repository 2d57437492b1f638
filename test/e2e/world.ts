/** A running stack and what a user does with it: apply, look, wait, delete. */

import { z } from 'zod';

import { pause } from '#shared/app/wait.ts';
import { applyObject, callApi, type ApiAddress, type ApiAnswer } from '#test/services/api.ts';
import { ensureNamespace } from '#test/services/apply.ts';
import { makeProgress } from '#test/stack/progress.ts';
import type { Installation } from '#test/stack/installation.ts';
import { startStack, type Stack, type StackOptions } from '#test/stack/stack.ts';

const proxySchema = z.looseObject({
  metadata: z.looseObject({
    name: z.string(),
    uid: z.string(),
    generation: z.number(),
    deletionTimestamp: z.string().optional(),
  }),
  status: z
    .looseObject({
      observedGeneration: z.number().optional(),
      host: z.string().optional(),
      port: z.number().optional(),
      providerID: z.string().optional(),
      zone: z.string().optional(),
      conditions: z
        .array(
          z.looseObject({ type: z.string(), status: z.string(), reason: z.string(), message: z.string() }),
        )
        .default([]),
    })
    .default({ conditions: [] }),
});
const listSchema = z.looseObject({ items: z.array(proxySchema) });
export type ProxyView = z.infer<typeof proxySchema>;

export interface World {
  readonly stack: Stack;
  /** The one that looks after the namespace. */
  readonly installation: Installation;
  readonly api: ApiAddress;
  readonly namespace: string;
  readonly discoveryUrl: string;
  apply(
    name: string,
    spec: Readonly<Record<string, unknown>>,
    labels?: Record<string, string>,
  ): Promise<void>;
  /** The server's answer to an apply, refusals included. */
  tryApply(name: string, spec: Readonly<Record<string, unknown>>): Promise<string>;
  get(name: string): Promise<ProxyView | undefined>;
  /** Every Proxy of the namespace. */
  list(): Promise<readonly ProxyView[]>;
  /** As `kubectl delete --wait=false`. */
  remove(name: string): Promise<ApiAnswer>;
  /** Polls until `seen` holds; the error shows the last state. */
  until(
    name: string,
    what: string,
    seen: (proxy: ProxyView | undefined) => boolean,
    timeoutMs?: number,
  ): Promise<ProxyView | undefined>;
  ready(name: string, timeoutMs?: number): Promise<ProxyView>;
}

/** Polls until `probe` gives a value that is not undefined. */
export const poll = async <T>(
  what: string,
  probe: () => Promise<T | undefined> | T | undefined,
  timeoutMs = 60_000,
): Promise<T> => {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const value = await probe();
    if (value !== undefined) return value;
    if (performance.now() > deadline) throw new Error(`not within ${timeoutMs / 1000} s: ${what}`);
    await pause(50);
  }
};

/** True when a condition has this status for the generation that the Proxy has now. */
export const condition = (proxy: ProxyView | undefined, type: string, status: string): boolean =>
  proxy?.status.observedGeneration === proxy?.metadata.generation &&
  (proxy?.status.conditions.some((one) => one.type === type && one.status === status) ?? false);

const makeWorld = (stack: Stack, installation: Installation, namespace: string): World => {
  const { server, caFile, tokens } = stack.controlPlane;
  const api: ApiAddress = { server, caFile, token: tokens['admin'] ?? '' };
  const path = (name: string): string =>
    `/apis/crawl.example.com/v1alpha1/namespaces/${namespace}/proxies${name && `/${name}`}`;
  const manifest = (
    name: string,
    spec: Readonly<Record<string, unknown>>,
    labels: Record<string, string> = {},
  ) => ({
    apiVersion: 'crawl.example.com/v1alpha1',
    kind: 'Proxy',
    metadata: { name, namespace, labels },
    spec,
  });
  const get = async (name: string): Promise<ProxyView | undefined> => {
    const answer = await callApi(api, path(name));
    if (answer.status === 404) return undefined;
    return proxySchema.parse(answer.body);
  };
  const until: World['until'] = async (name, what, seen, timeoutMs = 90_000) => {
    let last: ProxyView | undefined;
    const probe = async (): Promise<{ proxy: ProxyView | undefined } | undefined> => {
      last = await get(name);
      return seen(last) ? { proxy: last } : undefined;
    };
    try {
      return (await poll(`${name} ${what}`, probe, timeoutMs)).proxy;
    } catch (cause) {
      throw new Error(`${name}: ${what}; last seen: ${JSON.stringify(last?.status)}`, { cause });
    }
  };
  return {
    stack,
    installation,
    api,
    namespace,
    discoveryUrl: installation.deployments.urls.discovery,
    get,
    async list() {
      const answer = await callApi(api, path(''));
      return listSchema.parse(answer.body).items;
    },
    until,
    async apply(name, spec, labels) {
      await applyObject(api, manifest(name, spec, labels));
    },
    tryApply: (name, spec) =>
      applyObject(api, manifest(name, spec)).then(
        () => 'accepted',
        (error: unknown) => String(error),
      ),
    remove: (name) => callApi(api, path(name), { method: 'DELETE' }),
    async ready(name, timeoutMs) {
      const proxy = await until(name, 'is Ready', (seen) => condition(seen, 'Ready', 'True'), timeoutMs);
      if (!proxy) throw new Error(`${name} is not there`);
      return proxy;
    },
  };
};

/** A Secret for Proxies; `uses` are the labels that say what for. */
export const applySecret = async (
  { api, namespace }: World,
  name: string,
  stringData: Readonly<Record<string, string>>,
  uses: readonly ('credentials' | 'cloud-init')[],
): Promise<void> => {
  const labels = Object.fromEntries(uses.map((use) => [`crawl.example.com/${use}`, 'true']));
  await applyObject(api, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace, labels },
    stringData,
  });
};

/** Of an installation that shares its cluster. */
export const namespaceOf = (id: string): string => `of-${id}`;

const withNamespace = async (stack: Stack, installation: Installation, namespace: string): Promise<World> => {
  const world = makeWorld(stack, installation, namespace);
  await ensureNamespace(world.api, namespace);
  return world;
};

/** Starts a stack of its own, and a namespace in it. */
export const startWorld = async (namespace: string, options: Partial<StackOptions> = {}): Promise<World> => {
  const stack = await startStack({ progress: makeProgress((line) => console.log(line)), ...options });
  const [installation] = stack.installations;
  return withNamespace(stack, installation, namespace);
};

/** Starts a stack with several installations, each of which has a namespace of its own, named after it. */
export const startWorlds = async (
  options: Partial<StackOptions> & Required<Pick<StackOptions, 'installations'>>,
): Promise<readonly World[]> => {
  const stack = await startStack({ progress: makeProgress((line) => console.log(line)), ...options });
  return Promise.all(stack.installations.map((one) => withNamespace(stack, one, namespaceOf(one.id))));
};

export const gcpSpec = (more: Readonly<Record<string, unknown>> = {}): Record<string, unknown> => ({
  provider: 'gcp',
  maxLeases: 5,
  drainTimeoutSeconds: 5,
  gcp: {
    zones: ['europe-west1-b', 'europe-west1-c'],
    machineType: 'e2-micro',
    image: 'projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64',
  },
  ...more,
});
