import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { EXTERNAL, GCP } from '../proxies.ts';
import { condition, secretOf, startProvision, type Provision } from './fixture.ts';

const INIT_LABEL = { 'crawl.example.com/cloud-init': 'true' };
const ACCESS_LABEL = { 'crawl.example.com/credentials': 'true' };
const USER_DATA = '#cloud-config\n# a-marker-that-must-not-leak\n';
const PASSWORD = 'a-password-that-must-not-leak';

let provision: Provision;

beforeAll(async () => {
  provision = await startProvision();
  // Loads the client library, which takes its time.
  await provision.provider.get('nobody', 'europe-west1-b');
});
afterAll(async () => {
  await provision.stop();
});

const withInit = (name: string) => ({ ...GCP, cloudInit: { secretRef: { name } } });
const instances = () => provision.compute.standIn.control.instances();

describe('Secrets (W7)', () => {
  test('a missing one says missing, an unlabelled one says so, a missing key too; mended, the Proxy goes on (B3)', async () => {
    const name = await provision.apply(withInit('init-1'));
    await provision.nudge(name);
    const missing = await provision.get(name);
    expect(condition(missing, 'Provisioned')).toMatchObject({ status: 'False', reason: 'SecretMissing' });
    expect(condition(missing, 'Provisioned')?.message).toContain('init-1');
    expect(missing?.status?.observed?.secretVersions).toEqual({ 'init-1': 'missing' });

    await secretOf(provision, 'init-1', { other: 'x' });
    await provision.nudge(name);
    const unlabelled = condition(await provision.get(name), 'Provisioned');
    expect(unlabelled?.reason).toBe('SecretNotLabelled');
    expect(unlabelled?.message).toContain('crawl.example.com/cloud-init=true');

    await secretOf(provision, 'init-1', { other: 'x' }, INIT_LABEL);
    await provision.nudge(name);
    const keyless = condition(await provision.get(name), 'Provisioned');
    expect(keyless?.reason).toBe('SecretKeyMissing');
    expect(keyless?.message).toContain('user-data');

    await secretOf(provision, 'init-1', { 'user-data': USER_DATA }, INIT_LABEL);
    await provision.nudge(name);
    const mended = await provision.get(name);
    expect(condition(mended, 'Provisioned')?.status).toBe('True');
    expect(mended?.metadata.generation, 'nobody edited it').toBe(1);
  });

  test('another content replaces exactly the Proxies that use it', async () => {
    await secretOf(provision, 'init-2', { 'user-data': USER_DATA }, INIT_LABEL);
    const user = await provision.apply(withInit('init-2'));
    const other = await provision.apply(GCP);
    for (const name of [user, other]) {
      await provision.nudge(name);
      await provision.judge(name, 'Healthy');
    }
    await secretOf(provision, 'init-2', { 'user-data': `${USER_DATA}# more\n` }, INIT_LABEL);
    for (const name of [user, other]) await provision.nudge(name);
    expect((await provision.record(user))?.machines).toHaveLength(2);
    expect((await provision.record(other))?.machines).toHaveLength(1);
  });

  test('what they hold is in no log, status or message, and passwords only where discovery reads them', async () => {
    await secretOf(provision, 'init-3', { 'user-data': USER_DATA }, INIT_LABEL);
    await secretOf(provision, 'access-3', { username: 'crawler', password: PASSWORD }, ACCESS_LABEL);
    const name = await provision.apply({ ...withInit('init-3'), credentialsSecretRef: { name: 'access-3' } });
    await provision.nudge(name);
    const [open, secret] = await provision.documents(name);
    const endpointId = (await provision.record(name))?.serving?.endpoint.id ?? '';
    expect(secret).toContain(PASSWORD);
    expect(secret).toContain(endpointId);
    expect(secret).not.toContain('a-marker');
    const shown = [open, JSON.stringify(await provision.get(name)), ...provision.lines].join('\n');
    expect(shown).toContain(endpointId);
    expect(shown).not.toContain(PASSWORD);
    expect(shown).not.toContain('a-marker');

    await provision.remove(name);
    await provision.nudge(name);
    expect((await provision.documents(name))[1]).not.toContain(endpointId);
  });

  test('user-data beyond the metadata limit is refused before any call (row 50)', async () => {
    await secretOf(provision, 'init-4', { 'user-data': 'x'.repeat(300_000) }, INIT_LABEL);
    const before = instances().length;
    const name = await provision.apply(withInit('init-4'));
    await provision.nudge(name);
    expect(condition(await provision.get(name), 'Provisioned')?.reason).toBe('InvalidSpec');
    expect(instances()).toHaveLength(before);
  });
});

describe('configuration (B3)', () => {
  test('a provider that is not configured is said, and once it is, the Proxy goes on unedited', async () => {
    const name = await provision.apply(GCP);
    await provision.nudge(name, { providers: {} });
    const before = await provision.get(name);
    expect(condition(before, 'Provisioned')).toMatchObject({
      reason: 'ProviderNotConfigured',
      status: 'False',
    });
    expect((await provision.record(name))?.wakeAt).toBeLessThanOrEqual(Date.now() + 600_000);
    await provision.nudge(name);
    expect(condition(await provision.get(name), 'Provisioned')?.status).toBe('True');
  });

  test("another installation's Proxy is left alone (B2)", async () => {
    const name = await provision.apply(GCP);
    await provision.nudge(name, { installation: 'other', providers: {} });
    const before = await provision.get(name);
    expect(before?.status?.installation).toBe('other');
    await provision.nudge(name);
    expect((await provision.get(name))?.metadata.resourceVersion).toBe(before?.metadata.resourceVersion);
  });
});

describe('External', () => {
  test('is published as given; an edit starts from zero (N4)', async () => {
    const name = await provision.apply(EXTERNAL);
    await provision.nudge(name);
    await provision.judge(name, 'Healthy');
    await provision.nudge(name);
    const proxy = await provision.get(name);
    expect(condition(proxy, 'Ready')?.status).toBe('True');
    expect(proxy?.status).toMatchObject({ host: 'proxy.example.net', port: 3128, provider: 'External' });
    await provision.edit(name, { endpoint: { host: 'other.example.net' } });
    await provision.nudge(name);
    expect((await provision.record(name))?.serving?.verdict.state).toBe('Unknown');
    expect(condition(await provision.get(name), 'Ready')?.reason).toBe('NotHealthy');
  });

  test('at a private address is refused unless the operator allows it, without an edit then (B3)', async () => {
    const name = await provision.apply({ endpoint: { host: '127.0.0.1', port: 3128 } });
    await provision.nudge(name);
    expect(condition(await provision.get(name), 'Provisioned')?.reason).toBe('EndpointRefused');
    await provision.nudge(name, { allowPrivateEndpoints: true });
    expect(condition(await provision.get(name), 'Provisioned')?.status).toBe('True');
  });

  test('is deleted without any cloud', async () => {
    const name = await provision.apply(EXTERNAL);
    await provision.nudge(name);
    await provision.remove(name);
    await provision.nudge(name, { providers: {} });
    expect(await provision.get(name)).toBeUndefined();
  });
});

test('what cannot be decoded is logged and acknowledged (row 19)', async () => {
  const event = '{"specversion":"1.0","type":"google.cloud.pubsub.topic.v1.messagePublished","data":{}}';
  for (const body of ['', 'not json', '{}', event, '{"message":{"data":"bm8=","messageId":"1"}}']) {
    expect(await provision.post(new TextEncoder().encode(body))).toMatchObject({ status: 204 });
  }
  expect(provision.lines.filter((line) => line.includes('a message was dropped'))).toHaveLength(5);
});

describe('without the right to read Secrets', () => {
  test('observedGeneration stays where it was, and the condition says why (W5)', async () => {
    const poor = await startProvision({ secrets: false });
    try {
      const name = await poor.apply(withInit('init-1'));
      expect(await poor.nudge(name)).toMatchObject({ status: 204 });
      const proxy = await poor.get(name);
      expect(condition(proxy, 'Provisioned')).toMatchObject({ status: 'False', reason: 'SecretUnreadable' });
      expect(proxy?.status?.observedGeneration).toBeUndefined();
      expect(proxy?.metadata.finalizers).toHaveLength(1);
    } finally {
      await poor.stop();
    }
  });
});
