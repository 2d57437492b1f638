/** Manifest files into a cluster, in order, with what they presuppose. */

import { readFileSync } from 'node:fs';

import { z } from 'zod';

import { pause } from '#shared/app/wait.ts';

import { applyObject, callApi, parseManifests, type ApiAddress, type Manifest } from './api.ts';

const ESTABLISHED_MS = 30_000;

const crdSchema = z.object({
  status: z.object({ conditions: z.array(z.object({ type: z.string(), status: z.string() })) }),
  spec: z.object({
    group: z.string(),
    versions: z.array(z.object({ name: z.string(), served: z.boolean() })),
  }),
});

/** Established comes a moment before the paths are served, so both are waited for. */
const isServed = async (api: ApiAddress, name: string): Promise<boolean> => {
  const answer = await callApi(api, `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${name}`);
  const crd = crdSchema.safeParse(answer.body);
  if (!crd.success) return false;
  const { status, spec } = crd.data;
  if (!status.conditions.some((entry) => entry.type === 'Established' && entry.status === 'True'))
    return false;
  const served = spec.versions.filter((version) => version.served);
  const answers = await Promise.all(
    served.map((version) => callApi(api, `/apis/${spec.group}/${version.name}`)),
  );
  return answers.every(({ status: code }) => code === 200);
};

const untilServed = async (api: ApiAddress, name: string): Promise<void> => {
  const deadline = performance.now() + ESTABLISHED_MS;
  while (!(await isServed(api, name))) {
    if (performance.now() > deadline)
      throw new Error(`${name} was not served after ${ESTABLISHED_MS / 1000} s`);
    await pause(50);
  }
};

/** Creates the namespace unless it is there. */
export const ensureNamespace = async (api: ApiAddress, name: string): Promise<void> => {
  await applyObject(api, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
};

/** Applies one object; a CRD is waited for. */
export const applyManifest = async (api: ApiAddress, manifest: Manifest): Promise<void> => {
  await applyObject(api, manifest);
  if (manifest.kind === 'CustomResourceDefinition') await untilServed(api, manifest.metadata.name);
};

/** Applies every object of a YAML text; namespaces that they name are created, CRDs are waited for. */
export const applyManifests = async (api: ApiAddress, text: string): Promise<void> => {
  const manifests = parseManifests(text);
  for (const namespace of new Set(manifests.flatMap(({ metadata }) => metadata.namespace ?? []))) {
    await ensureNamespace(api, namespace);
  }
  for (const manifest of manifests) await applyManifest(api, manifest);
};

export const applyFile = (api: ApiAddress, file: string): Promise<void> =>
  applyManifests(api, readFileSync(file, 'utf8'));
