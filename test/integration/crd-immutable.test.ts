import { describe, expect, test } from 'vitest';
import {
  call,
  createProxy,
  EXTERNAL,
  GCP,
  KUBERNETES,
  mergePatch,
  proxyPath,
  randomName,
  randomNamespace,
  refusal,
  stored,
} from './proxies.ts';

const namespace = await randomNamespace();

const IMMUTABLE = /^spec\.provider: .*provider is immutable, its absence \(External\) included/;

const existing = async (spec: object): Promise<string> => {
  const name = randomName('fixed');
  stored(await createProxy(namespace, spec, { name }));
  return proxyPath(namespace, name);
};
const unchanged = async (path: string, spec: object): Promise<void> => {
  const now = stored(await call(path));
  expect(now.spec).toMatchObject(spec);
  expect(now.metadata.generation).toBe(1);
};

describe('the provider of an existing Proxy stays (K4)', () => {
  test.each<[string, object, object]>([
    ['gcp to kubernetes', GCP, { provider: 'kubernetes', gcp: null, kubernetes: KUBERNETES.kubernetes }],
    ['gcp to External', GCP, { provider: null, gcp: null, ...EXTERNAL }],
    ['External to gcp', EXTERNAL, { endpoint: null, ...GCP }],
    ['kubernetes to gcp', KUBERNETES, { kubernetes: null, ...GCP }],
    ['kubernetes to External', KUBERNETES, { provider: null, kubernetes: null, ...EXTERNAL }],
  ])('%s is refused, with this one reason', async (_, before, edit) => {
    const path = await existing(before);
    expect(refusal(await mergePatch(path, { spec: edit }))).toEqual([expect.stringMatching(IMMUTABLE)]);
    await unchanged(path, before);
  });

  test('it cannot be removed first and set to another one then', async () => {
    const path = await existing(GCP);
    expect(refusal(await mergePatch(path, { spec: { provider: null } }))).toContainEqual(
      expect.stringMatching(IMMUTABLE),
    );
    await unchanged(path, GCP);
  });

  test('nor in one patch', async () => {
    const path = await existing(GCP);
    const answer = await call(path, {
      method: 'PATCH',
      contentType: 'application/json-patch+json',
      body: [
        { op: 'remove', path: '/spec/provider' },
        { op: 'remove', path: '/spec/gcp' },
        { op: 'add', path: '/spec/provider', value: 'kubernetes' },
        { op: 'add', path: '/spec/kubernetes', value: KUBERNETES.kubernetes },
      ],
    });
    expect(refusal(answer)).toEqual([expect.stringMatching(IMMUTABLE)]);
    await unchanged(path, GCP);
  });

  test('nor by removing the whole spec', async () => {
    const path = await existing(GCP);
    expect(refusal(await mergePatch(path, { spec: null }))).toEqual(['spec: Required value']);
    await unchanged(path, GCP);
  });

  test('nor by replacing the whole object', async () => {
    const path = await existing(GCP);
    const { metadata } = stored(await call(path));
    const body = { apiVersion: 'crawl.example.com/v1alpha1', kind: 'Proxy', metadata, spec: EXTERNAL };
    expect(refusal(await call(path, { method: 'PUT', body }))).toEqual([expect.stringMatching(IMMUTABLE)]);
    await unchanged(path, GCP);
  });

  test('nor by a server-side apply that no longer has it', async () => {
    const name = randomName('fixed');
    const path = proxyPath(namespace, name);
    const apply = (spec: object) =>
      call(`${path}?fieldManager=test&force=true`, {
        method: 'PATCH',
        contentType: 'application/apply-patch+yaml',
        body: {
          apiVersion: 'crawl.example.com/v1alpha1',
          kind: 'Proxy',
          metadata: { name, namespace },
          spec,
        },
      });
    stored(await apply(GCP));
    expect(refusal(await apply(EXTERNAL))).toEqual([expect.stringMatching(IMMUTABLE)]);
    await unchanged(path, GCP);
  });

  test('nor through the status', async () => {
    const path = await existing(GCP);
    const edit = { spec: { provider: 'kubernetes' }, status: { observedGeneration: 1 } };
    expect(stored(await mergePatch(`${path}/status`, edit)).status).toEqual({ observedGeneration: 1 });
    await unchanged(path, GCP);
  });

  test.each<[string, object, object]>([
    [
      'another machine type, zone, port and revision',
      GCP,
      { gcp: { machineType: 'e2-small', zones: ['us-central1-a'] }, port: 8080, revision: '2' },
    ],
    ['another endpoint', EXTERNAL, { endpoint: { host: '203.0.113.9', port: 1, scheme: 'https' } }],
    ['another image', KUBERNETES, { kubernetes: { image: 'registry.example.com/squid:2' } }],
    ['the same provider once more', GCP, { provider: 'gcp', cordoned: true }],
  ])('while everything else can be edited: %s', async (_, before, edit) => {
    const after = stored(await mergePatch(await existing(before), { spec: edit }));
    expect(after.spec).toMatchObject(edit);
    expect(after.metadata.generation).toBe(2);
  });
});
