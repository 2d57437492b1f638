import { describe, expect, it } from 'vitest';

import { desiredOf } from '../../../functions/provision/desire.ts';
import { resolveInputs } from '../../../functions/provision/secrets.ts';
import { replaceWorthy } from '#shared/domain/desired.ts';
import type { ProxyObject, SecretReading } from '#shared/kubernetes/cluster.ts';

import { gcpSpec, newWorld, type Spec } from './world.ts';

const proxyOf = (spec: Spec): ProxyObject => {
  const { proxy } = newWorld(spec);
  if (!proxy) throw new Error('there is no Proxy');
  return proxy;
};

const resolve = (spec: Spec, secrets: Readonly<Record<string, SecretReading>> = {}) => {
  const proxy = proxyOf(spec);
  return resolveInputs(proxy, desiredOf(proxy), {
    readSecret: async (_namespace, name) => secrets[name] ?? { kind: 'missing' },
  });
};

const hashOf = async (spec: Spec, secrets: Readonly<Record<string, SecretReading>> = {}): Promise<string> => {
  const { inputs } = await resolve(spec, secrets);
  if (inputs.kind !== 'resolved') throw new Error(inputs.message);
  return inputs.hash;
};

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const secret = (
  data: Readonly<Record<string, string>>,
  labels: Readonly<Record<string, string>> = {},
  version = '1',
): SecretReading => ({
  kind: 'found',
  labels,
  data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, bytes(value)])),
  version,
});
const INIT = { 'crawl.example.com/cloud-init': 'true' };
const ACCESS = { 'crawl.example.com/credentials': 'true' };
const withInit: Spec = gcpSpec({ cloudInit: { secretRef: { name: 'init' } } });
const withAccess: Spec = gcpSpec({ credentialsSecretRef: { name: 'access' } });

const hashWith = (username: string, password: string) =>
  hashOf(withAccess, { access: secret({ username, password }, ACCESS) });

const { gcp } = gcpSpec();
if (!gcp) throw new Error('the sample is a gcp Proxy');

describe('the hash of what is worth a new machine', () => {
  const worthy: Readonly<Record<string, Spec>> = {
    port: gcpSpec({ port: 8080 }),
    revision: gcpSpec({ revision: '2' }),
    machineType: gcpSpec({ gcp: { ...gcp, machineType: 'e2-small' } }),
    image: gcpSpec({ gcp: { ...gcp, image: 'projects/p/global/images/other' } }),
    subnetwork: gcpSpec({ gcp: { ...gcp, subnetwork: 'other' } }),
    externalIP: gcpSpec({ gcp: { ...gcp, externalIP: 'None' } }),
    provisioningModel: gcpSpec({ gcp: { ...gcp, provisioningModel: 'Spot' } }),
    cloudInit: gcpSpec({ cloudInit: { inline: '#cloud-config' } }),
  };
  it.each(Object.entries(worthy))('changes with %s', async (_field, spec) => {
    expect(await hashOf(spec)).not.toBe(await hashOf(gcpSpec()));
  });

  const pod: Spec = { provider: 'kubernetes', kubernetes: { image: 'registry.example.com/squid:1' } };
  const podWith = (changes: Partial<NonNullable<Spec['kubernetes']>>): Spec => ({
    ...pod,
    kubernetes: { image: 'registry.example.com/squid:1', ...changes },
  });
  it.each<[string, Spec]>([
    ['the image', podWith({ image: 'registry.example.com/squid:2' })],
    ['the arguments', podWith({ args: ['-N'] })],
    ['the resources', podWith({ resources: { limits: { memory: '128Mi' } } })],
    ['the node selector', podWith({ nodeSelector: { 'kubernetes.io/os': 'linux' } })],
    ['the tolerations', podWith({ tolerations: [{ key: 'egress', operator: 'Exists' }] })],
    ['cloudInit', { ...pod, cloudInit: { inline: '#cloud-config' } }],
  ])('of a Pod changes with %s', async (_, spec) => {
    expect(await hashOf(spec)).not.toBe(await hashOf(pod));
  });

  it('of a Pod does not change with the order in which fields were written', async () => {
    const nodeSelector = { a: '1', b: '2' };
    const turned = { b: '2', a: '1' };
    expect(await hashOf(podWith({ nodeSelector }))).toBe(await hashOf(podWith({ nodeSelector: turned })));
  });

  it('a Pod may only be where its Proxy is', () => {
    const proxy = proxyOf(pod);
    expect(desiredOf(proxy)).toMatchObject({ zones: [proxy.metadata.namespace], ownExit: false });
  });

  it('differs for every one of them', async () => {
    const hashes = await Promise.all(Object.values(worthy).map((spec) => hashOf(spec)));
    expect(new Set(hashes).size).toBe(hashes.length);
  });

  const worthless: Readonly<Record<string, Spec>> = {
    zones: gcpSpec({ gcp: { ...gcp, zones: ['us-central1-a'] } }),
    maxLeases: gcpSpec({ maxLeases: 99 }),
    cordoned: gcpSpec({ cordoned: true }),
    drainTimeoutSeconds: gcpSpec({ drainTimeoutSeconds: 1 }),
    healthCheck: gcpSpec({ healthCheck: { intervalSeconds: 600 } }),
    updateStrategy: gcpSpec({ updateStrategy: { type: 'Recreate' } }),
    'defaults that a schema fills in': gcpSpec({
      port: 3128,
      revision: '',
      gcp: { ...gcp, subnetwork: 'default', externalIP: 'Ephemeral', provisioningModel: 'Standard' },
    }),
  };
  it.each(Object.entries(worthless))('does not change with %s', async (_field, spec) => {
    expect(await hashOf(spec)).toBe(await hashOf(gcpSpec()));
  });

  it('changes with the content of a Secret, not with its version', async () => {
    const first = await hashOf(withInit, { init: secret({ 'user-data': 'a' }, INIT, '1') });
    expect(await hashOf(withInit, { init: secret({ 'user-data': 'a' }, INIT, '2') })).toBe(first);
    expect(await hashOf(withInit, { init: secret({ 'user-data': 'b' }, INIT, '1') })).not.toBe(first);
  });

  it('is the same wherever the content comes from', async () => {
    const inline = await hashOf(gcpSpec({ cloudInit: { inline: 'a' } }));
    expect(await hashOf(withInit, { init: secret({ 'user-data': 'a' }, INIT) })).toBe(inline);
  });

  it('does not run user name and password into each other', async () => {
    expect(await hashWith('ab', 'c')).not.toBe(await hashWith('a', 'bc'));
  });

  it('keeps its text for ever: another text would replace every fleet', () => {
    const machine = desiredOf(proxyOf(gcpSpec({ revision: 'r' }))).machine;
    expect(machine && replaceWorthy(machine, { userDataDigest: 'd' })).toBe(
      '{"gcp":{"image":"projects/p/global/images/family/ubuntu","machineType":"e2-micro"},"port":3128,"revision":"r","userDataDigest":"d"}',
    );
  });
});

describe('Secrets (W7)', () => {
  const bad: readonly (readonly [string, Spec, Readonly<Record<string, SecretReading>>, string, RegExp])[] = [
    ['is missing', withInit, {}, 'SecretMissing', /init .*does not exist/],
    [
      'has no label',
      withInit,
      { init: secret({ 'user-data': 'a' }) },
      'SecretNotLabelled',
      /cloud-init=true/,
    ],
    [
      'has the label of another use',
      withAccess,
      { access: secret({ username: 'u', password: 'p' }, INIT) },
      'SecretNotLabelled',
      /credentials=true/,
    ],
    ['lacks its key', withInit, { init: secret({ other: 'a' }, INIT) }, 'SecretKeyMissing', /user-data/],
    [
      'lacks the password',
      withAccess,
      { access: secret({ username: 'u' }, ACCESS) },
      'SecretKeyMissing',
      /password/,
    ],
    [
      'has a user name that Basic auth cannot carry',
      withAccess,
      { access: secret({ username: 'a:b', password: 'p' }, ACCESS) },
      'InvalidSpec',
      /colon/,
    ],
    [
      'has a line break in its password',
      withAccess,
      { access: secret({ username: 'u', password: 'p\nq' }, ACCESS) },
      'InvalidSpec',
      /line break/,
    ],
    [
      'is larger than the metadata limit (row 50)',
      withInit,
      { init: secret({ 'user-data': 'x'.repeat(262_145) }, INIT) },
      'InvalidSpec',
      /262144/,
    ],
    [
      'is not text',
      withInit,
      { init: { kind: 'found', labels: INIT, data: { 'user-data': new Uint8Array([0xff]) }, version: '1' } },
      'InvalidSpec',
      /UTF-8/,
    ],
  ];
  it.each(bad)('one that %s is said so', async (_what, spec, secrets, reason, message) => {
    const { inputs, material } = await resolve(spec, secrets);
    expect(inputs).toMatchObject({ kind: 'trouble', reason, judged: true });
    expect(inputs.kind === 'trouble' && inputs.message).toMatch(message);
    expect(material).toEqual({});
  });

  it('one that cannot be read leaves the generation unjudged (W5)', async () => {
    const { inputs } = await resolve(withInit, { init: { kind: 'unreadable', message: 'forbidden' } });
    expect(inputs).toMatchObject({ reason: 'SecretUnreadable', judged: false, secretVersions: {} });
  });

  it('have their versions noted, missing ones too', async () => {
    const spec: Spec = { ...withInit, credentialsSecretRef: { name: 'access' } };
    const { inputs } = await resolve(spec, { init: secret({ 'user-data': 'a' }, INIT, '7') });
    expect(inputs.secretVersions).toEqual({ init: '7', access: 'missing' });
  });

  it('of an External Proxy are versioned by content', async () => {
    const spec: Spec = {
      endpoint: { host: 'proxy.example.net', port: 3128 },
      credentialsSecretRef: { name: 'access' },
    };
    const { inputs } = await resolve(spec, { access: secret({ username: 'u', password: 'p' }, ACCESS) });
    expect(inputs).toMatchObject({ kind: 'resolved', hash: '' });
    expect(inputs.kind === 'resolved' && inputs.credentialsVersion).toMatch(/^[0-9a-f]{16}$/);
  });
});
