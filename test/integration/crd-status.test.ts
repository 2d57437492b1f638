import { readdir, readFile } from 'node:fs/promises';
import { get } from 'node:https';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type {
  ProxyStatus,
  ProxyStatusCondition,
  ProxyStatusObserved,
  ProxyStatusReplacement,
} from '#shared/kubernetes/proxy.gen.ts';
import { parseManifests, type Manifest } from '#test/services/api.ts';
import { CRD_FILE, parseCrd, type Schema } from '#test/tools/generate-types.ts';
import {
  api,
  call,
  createProxy,
  EXTERNAL,
  GCP,
  GROUP_PATH,
  mergePatch,
  proxyPath,
  randomName,
  randomNamespace,
  refusal,
  stored,
} from './proxies.ts';

const namespace = await randomNamespace();

const condition = (type: string, reason: string): Required<ProxyStatusCondition> => ({
  type,
  status: 'True',
  observedGeneration: 1,
  lastTransitionTime: '2026-01-02T03:04:05Z',
  reason,
  message: 'Words of the provider: 409, "quota".',
});

const FULL_STATUS = {
  observedGeneration: 1,
  observed: {
    generation: 1,
    labelsHash: 'a'.repeat(64),
    secretVersions: { 'proxy-credentials': '1234', 'squid.cloud-init': '' },
  } satisfies Required<ProxyStatusObserved>,
  installation: 'prod',
  provider: 'gcp',
  host: '203.0.113.7',
  ip: '203.0.113.7',
  port: 3128,
  scheme: 'http',
  zone: 'europe-west1-b',
  providerID: 'gce://project/europe-west1-b/prod-0123456789abcdefghijklmno-01234567-1',
  exitAddress: '203.0.113.7',
  replacement: {
    providerID: 'gce://project/europe-west1-b/prod-0123456789abcdefghijklmno-89abcdef-2',
    zone: 'europe-west1-b',
    reason: 'SpecChanged',
    since: '2026-01-02T03:04:05Z',
  } satisfies Required<ProxyStatusReplacement>,
  conditions: [
    condition('Provisioned', 'Provisioned'),
    condition('Healthy', 'ProbeSucceeded'),
    condition('Ready', 'Ready'),
    condition('Stalled', 'Progressing'),
  ],
} satisfies Required<ProxyStatus>;

const schemaFields = ({ properties = {}, items }: Schema): string[] => [
  ...Object.entries(properties).flatMap(([key, child]) => [key].concat(schemaFields(child))),
  ...(items ? schemaFields(items) : []),
];

describe('the status of a Proxy', () => {
  test('keeps every field that is written (row 59)', async () => {
    const name = randomName('status');
    stored(await createProxy(namespace, GCP, { name }));
    stored(await mergePatch(`${proxyPath(namespace, name)}/status`, { status: FULL_STATUS }));
    expect(stored(await call(proxyPath(namespace, name))).status).toEqual(FULL_STATUS);
  });

  test('was tried with every field that the schema has', async () => {
    const crd = parseCrd(await readFile(CRD_FILE, 'utf8'));
    const status = crd.spec.versions[0].schema.openAPIV3Schema.properties?.['status'] ?? {};
    const written = JSON.stringify(FULL_STATUS);
    expect(schemaFields(status).filter((key) => !written.includes(`"${key}":`))).toEqual([]);
  });

  test('refuses a field that it would lose', async () => {
    const name = randomName('status');
    stored(await createProxy(namespace, GCP, { name }));
    const answer = await mergePatch(`${proxyPath(namespace, name)}/status`, { status: { address: '::1' } });
    expect(refusal(answer)).toEqual([expect.stringContaining('unknown field "status.address"')]);
  });

  test('changes no generation, and is not changed with the spec', async () => {
    const name = randomName('status');
    const path = proxyPath(namespace, name);
    stored(await createProxy(namespace, EXTERNAL, { name }));
    const written = stored(await mergePatch(`${path}/status`, { status: { observedGeneration: 1 } }));
    expect(written.metadata.generation).toBe(1);
    const edited = stored(await mergePatch(path, { spec: { cordoned: true }, status: { host: 'a' } }));
    expect([edited.metadata.generation, edited.status]).toEqual([2, { observedGeneration: 1 }]);
  });

  test('holds each type of condition once (row 57)', async () => {
    const name = randomName('status');
    stored(await createProxy(namespace, EXTERNAL, { name }));
    const conditions = [condition('Ready', 'Ready'), condition('Ready', 'Cordoned')];
    const answer = await mergePatch(`${proxyPath(namespace, name)}/status`, { status: { conditions } });
    expect(refusal(answer)).toEqual([expect.stringContaining('Duplicate value')]);
  });
});

const tableSchema = z.object({
  columnDefinitions: z.array(z.object({ name: z.string(), priority: z.number() })),
  rows: z.tuple([z.object({ cells: z.array(z.unknown()) })]),
});

/** What `kubectl get` asks for: the server's own table. */
const table = (path: string): Promise<z.infer<typeof tableSchema>> =>
  new Promise((resolve, reject) => {
    const { server, caFile, token } = api();
    const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io';
    const send = (ca: Buffer) =>
      get(
        new URL(path, server),
        { ca, headers: { accept, authorization: `Bearer ${token}` } },
        (response) => {
          response
            .setEncoding('utf8')
            .toArray()
            .then((chunks) => resolve(tableSchema.parse(JSON.parse(chunks.join('')))))
            .catch(reject);
        },
      ).once('error', reject);
    readFile(caFile).then(send, reject);
  });

describe('kubectl', () => {
  test('get shows who, whether, where and why, and finer things with -o wide', async () => {
    const name = randomName('columns');
    stored(await createProxy(namespace, GCP, { name }));
    stored(await mergePatch(`${proxyPath(namespace, name)}/status`, { status: FULL_STATUS }));
    const { columnDefinitions, rows } = await table(proxyPath(namespace, name));
    const shown = columnDefinitions.map((column, index) => [
      column.priority,
      column.name,
      rows[0].cells[index],
    ]);
    expect(shown).toEqual([
      [0, 'Name', name],
      [0, 'Provider', 'gcp'],
      [0, 'Ready', 'True'],
      [0, 'Healthy', 'True'],
      [0, 'Host', '203.0.113.7'],
      [0, 'Zone', 'europe-west1-b'],
      [0, 'Reason', 'Ready'],
      [0, 'Age', expect.any(String)],
      [1, 'Port', 3128],
      [1, 'Exit', '203.0.113.7'],
      [1, 'Leases', 1],
      [1, 'Cordoned', false],
      [1, 'Machine', FULL_STATUS.providerID],
      [1, 'Observed', 1],
      [1, 'Installation', 'prod'],
    ]);
  });

  test('explain describes every field', async () => {
    const document = z
      .object({ components: z.object({ schemas: z.record(z.string(), z.looseObject({})) }) })
      .parse((await call(`/openapi/v3${GROUP_PATH}`)).body);
    const proxy = z
      .object({ properties: z.object({ spec: z.unknown(), status: z.unknown() }) })
      .parse(document.components.schemas['com.example.crawl.v1alpha1.Proxy']);
    const fields = [
      ...undescribed(proxy.properties.spec, 'spec'),
      ...undescribed(proxy.properties.status, 'status'),
    ];
    expect(fields).toEqual([]);
  });

  test('finds the resource by its short name and category', async () => {
    const { resources } = z
      .object({ resources: z.array(z.looseObject({ name: z.string() })) })
      .parse((await call(GROUP_PATH)).body);
    expect(resources.find(({ name }) => name === 'proxies')).toMatchObject({
      kind: 'Proxy',
      namespaced: true,
      shortNames: ['px'],
      categories: ['crawl'],
    });
    expect(resources.map(({ name }) => name).sort()).toEqual(['proxies', 'proxies/status']);
  });
});

const served = z.looseObject({
  description: z.string().optional(),
  properties: z.record(z.string(), z.unknown()).optional(),
  items: z.unknown().optional(),
});

const undescribed = (value: unknown, path: string): string[] => {
  const { description, properties = {}, items } = served.parse(value);
  return [
    ...(description ? [] : [path]),
    ...Object.entries(properties).flatMap(([key, child]) => undescribed(child, `${path}.${key}`)),
    ...(items === undefined ? [] : undescribed(items, `${path}[]`)),
  ];
};

test('the CRD is accepted by the API server as it is: structural, within the cost of its rules (row 60)', async () => {
  const { body } = await call(
    '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/proxies.crawl.example.com',
  );
  const { status } = z
    .object({ status: z.object({ conditions: z.array(z.object({ type: z.string(), status: z.string() })) }) })
    .parse(body);
  const conditions = Object.fromEntries(status.conditions.map((each) => [each.type, each.status]));
  expect(conditions).toMatchObject({ NamesAccepted: 'True', Established: 'True' });
  expect(conditions).not.toHaveProperty('NonStructuralSchema');
});

const SAMPLES = new URL('../../crds/samples/', import.meta.url);
const files = (await readdir(fileURLToPath(SAMPLES))).filter((file) => file.endsWith('.yaml'));

const createSample = ({ metadata, ...rest }: Manifest): Promise<unknown> => {
  const collection =
    rest.kind === 'Secret' ? `/api/v1/namespaces/${namespace}/secrets` : proxyPath(namespace);
  return call(`${collection}?fieldValidation=Strict`, {
    method: 'POST',
    body: { ...rest, metadata: { ...metadata, namespace } },
  }).then(stripped);
};

const stripped = ({ status, body }: { status: number; body: unknown }): unknown =>
  status === 201 ? 'created' : body;

describe('samples', () => {
  test('are there for each provider', () => {
    expect(files.sort()).toEqual(['external.yaml', 'gcp-secrets.yaml', 'gcp.yaml', 'kubernetes.yaml']);
  });

  test.each(files)('%s applies with strict validation, in the namespace crawlers', async (file) => {
    const manifests = parseManifests(await readFile(new URL(file, SAMPLES), 'utf8'));
    expect(new Set(manifests.map(({ metadata }) => metadata.namespace))).toEqual(new Set(['crawlers']));
    for (const manifest of manifests) expect(await createSample(manifest)).toBe('created');
  });

  test('have labels that let their Secrets be used', async () => {
    const manifests = parseManifests(await readFile(new URL('gcp-secrets.yaml', SAMPLES), 'utf8'));
    const labels = manifests
      .filter(({ kind }) => kind === 'Secret')
      .map(({ metadata }) => metadata['labels']);
    expect(labels).toEqual([
      { 'crawl.example.com/credentials': 'true' },
      { 'crawl.example.com/cloud-init': 'true' },
    ]);
  });
});
