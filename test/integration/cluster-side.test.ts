/** terraform/cluster on the real API server, as kustomize would put it together. */

import { join } from 'node:path';

import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';

import { applyObject, callApi, type Manifest } from '#test/services/api.ts';
import { buildKustomization } from '#test/services/kustomize.ts';

import { api, randomName } from './proxies.ts';

const CLUSTER = join(import.meta.dirname, '../../terraform/cluster');

const base = buildKustomization(CLUSTER);
const withPods = buildKustomization(join(CLUSTER, 'kubernetes-provider'), base);
const names = (manifests: readonly Manifest[]) =>
  manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`).toSorted();

const deployment = z.object({
  spec: z.object({
    replicas: z.number(),
    template: z.object({
      metadata: z.looseObject({ labels: z.record(z.string(), z.string()) }),
      spec: z.looseObject({ containers: z.tuple([z.looseObject({})]) }),
    }),
  }),
});
const selecting = z.object({
  spec: z.union([
    z.object({ selector: z.object({ matchLabels: z.record(z.string(), z.string()) }) }),
    z.object({ podSelector: z.object({ matchLabels: z.record(z.string(), z.string()) }) }),
  ]),
});

const ofKind = (kind: string): Manifest => {
  const found = base.filter((manifest) => manifest.kind === kind);
  if (found.length !== 1 || !found[0]) throw new Error(`there are ${found.length} of ${kind}`);
  return found[0];
};
const { template } = deployment.parse(ofKind('Deployment')).spec;

describe('what kustomize makes of it', () => {
  test('the CRD, the roles, the watcher, and no binding to anybody', () => {
    expect(names(base)).toEqual([
      'ClusterRole egress-proxies-cluster-identity',
      'ClusterRole egress-proxies-gc',
      'ClusterRole egress-proxies-provision',
      'ClusterRole egress-proxies-watcher',
      'CustomResourceDefinition proxies.crawl.example.com',
      'Deployment watcher',
      'Namespace egress-proxies',
      'NetworkPolicy watcher',
      'PodDisruptionBudget watcher',
      'ServiceAccount watcher',
    ]);
  });

  test('the component adds the roles for Pods, and nothing else', () => {
    expect(names(withPods)).toEqual(
      [
        ...names(base),
        'ClusterRole egress-proxies-gc-pods',
        'ClusterRole egress-proxies-provision-pods',
        'ClusterRole egress-proxies-watcher-pods',
      ].toSorted(),
    );
  });

  test('policy and budget mean the Pods of the Deployment', () => {
    for (const kind of ['NetworkPolicy', 'PodDisruptionBudget']) {
      const { spec } = selecting.parse(ofKind(kind));
      const { matchLabels } = 'selector' in spec ? spec.selector : spec.podSelector;
      expect(template.metadata.labels).toMatchObject(matchLabels);
      expect(Object.keys(matchLabels)).not.toEqual([]);
    }
  });
});

describe('on the API server', () => {
  const namespace = randomName('watcher');
  const placed = (manifest: Manifest): Manifest =>
    manifest.metadata.namespace === undefined
      ? manifest
      : { ...manifest, metadata: { ...manifest.metadata, namespace } };

  beforeAll(async () => {
    const room = ofKind('Namespace');
    await applyObject(api(), { ...room, metadata: { ...room.metadata, name: namespace } });
    await applyObject(api(), placed(ofKind('ServiceAccount')));
  });

  const dryRun = '?dryRun=All&fieldValidation=Strict&fieldManager=test';

  test.each([
    ['/apis/apps/v1', 'deployments', 'Deployment'],
    ['/apis/policy/v1', 'poddisruptionbudgets', 'PodDisruptionBudget'],
    ['/apis/networking.k8s.io/v1', 'networkpolicies', 'NetworkPolicy'],
  ])('%s/%s is taken, and every field of it is known', async (root, plural, kind) => {
    const answer = await callApi(api(), `${root}/namespaces/${namespace}/${plural}${dryRun}`, {
      method: 'POST',
      body: placed(ofKind(kind)),
    });
    expect(answer).toMatchObject({ status: 201, body: { kind } });
  });

  test.each(withPods.filter(({ kind }) => kind === 'ClusterRole').map(({ metadata }) => metadata.name))(
    'the role %s is taken, and every field of it is known',
    async (name) => {
      const body = withPods.find(({ kind, metadata }) => kind === 'ClusterRole' && metadata.name === name);
      const path = `/apis/rbac.authorization.k8s.io/v1/clusterroles/${name}${dryRun}&force=true`;
      const contentType = 'application/apply-patch+yaml';
      const answer = await callApi(api(), path, { method: 'PATCH', body, contentType });
      expect([200, 201]).toContain(answer.status);
    },
  );

  const runPod = (spec: object) =>
    callApi(api(), `/api/v1/namespaces/${namespace}/pods${dryRun}`, {
      method: 'POST',
      body: {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'watcher', labels: template.metadata.labels },
        spec: { ...template.spec, ...spec },
      },
    });

  test('its Pod is admitted where only restricted ones are, and one that runs as root is not', async () => {
    expect(await runPod({})).toMatchObject({ status: 201 });
    expect(await runPod({ securityContext: { runAsUser: 0 } })).toMatchObject({ status: 403 });
    expect(await runPod({ hostNetwork: true })).toMatchObject({ status: 403 });
  });
});
