/** The samples, from `kubectl apply` to a page that came through a leased proxy. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

import { z } from 'zod';

import { pause } from '#shared/app/wait.ts';
import { callApi, parseManifests, type ApiAddress, type Manifest } from '#test/services/api.ts';
import { applyObject } from '#test/services/api.ts';
import { ensureNamespace } from '#test/services/apply.ts';

import { acquire, fetchThrough, release } from './crawl.ts';
import type { Progress } from './progress.ts';
import type { Stack } from './stack.ts';

const SAMPLES = join(import.meta.dirname, '../../crds/samples');
const FILES = ['gcp.yaml', 'gcp-secrets.yaml', 'kubernetes.yaml', 'external.yaml'] as const;
const READY_MS = 120_000;

const externalSchema = z.looseObject({ spec: z.looseObject({ endpoint: z.looseObject({}) }) });

/** The sample for External names a stranger's host: here it gets the one that this stack runs. */
const localised = (manifest: Manifest, external: { host: string; port: number }): Manifest => {
  const parsed = externalSchema.safeParse(manifest);
  if (!parsed.success) return manifest;
  const spec = { ...parsed.data.spec, endpoint: { host: external.host, port: external.port } };
  return { ...manifest, spec };
};

const statusSchema = z.object({
  status: z.object({
    conditions: z.array(
      z.object({ type: z.string(), status: z.string(), reason: z.string(), message: z.string() }),
    ),
  }),
});

const readiness = async (api: ApiAddress, path: string): Promise<{ ready: boolean; why: string }> => {
  const { body } = await callApi(api, path);
  const conditions = statusSchema.safeParse(body).data?.status.conditions ?? [];
  return {
    ready: conditions.some(({ type, status }) => type === 'Ready' && status === 'True'),
    why: conditions
      .map(({ type, status, reason, message }) => `${type}=${status} ${reason}: ${message}`)
      .join('; '),
  };
};

/** Resolves when the Proxy is Ready. Throws with its conditions when it takes too long. */
export const untilReady = async (api: ApiAddress, namespace: string, name: string): Promise<void> => {
  const path = `/apis/crawl.example.com/v1alpha1/namespaces/${namespace}/proxies/${name}`;
  const deadline = performance.now() + READY_MS;
  for (;;) {
    const { ready, why } = await readiness(api, path);
    if (ready) return;
    if (performance.now() > deadline) {
      throw new Error(
        `${namespace}/${name} was not Ready after ${READY_MS / 1000} s; ${why || 'it has no conditions yet'}`,
      );
    }
    await pause(100);
  }
};

const applySamples = async (api: ApiAddress, stack: Stack): Promise<readonly Manifest[]> => {
  const texts = await Promise.all(FILES.map((file) => readFile(join(SAMPLES, file), 'utf8')));
  const manifests = texts
    .flatMap(parseManifests)
    .map((manifest) => localised(manifest, stack.cloud.externalProxy));
  await ensureNamespace(api, 'crawlers');
  for (const manifest of manifests) await applyObject(api, manifest);
  return manifests.filter(({ kind }) => kind === 'Proxy');
};

const crawlThrough = async (stack: Stack, { metadata }: Manifest): Promise<string> => {
  const discovery = stack.deployments.urls.discovery;
  const proxy = { namespace: metadata.namespace ?? 'default', name: metadata.name };
  const lease = await acquire(discovery, { holder: 'tour', proxy });
  const page = await fetchThrough(lease, stack.cloud.target.url);
  if (page.status !== 200 || !page.body.includes(lease.host)) {
    throw new Error(`the page did not come through ${lease.host}: ${page.status} ${page.body}`);
  }
  await release(discovery, lease);
  return lease.host;
};

/** Throws unless a page came through a leased proxy for every sample. */
export const runTour = async (stack: Stack, progress: Progress): Promise<void> => {
  const { server, caFile, tokens } = stack.controlPlane;
  const api = { server, caFile, token: tokens['admin'] ?? '' };
  const samples = await progress.step('samples applied', () => applySamples(api, stack));
  await Promise.all(
    samples.map(async (sample) => {
      const { namespace = 'default', name } = sample.metadata;
      await progress.step(`${namespace}/${name} is Ready`, () => untilReady(api, namespace, name));
      await progress.step(`${namespace}/${name}: leased, page fetched through it, released`, () =>
        crawlThrough(stack, sample),
      );
    }),
  );
};
