import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { call, mergePatch } from './proxies.ts';
import { openAs, openStage, type Stage } from './watcher/stage.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
});
afterAll(() => stage.close());

describe('messages per change', () => {
  test('W6: exactly one for each spec change, none for twenty status writes and our finalizer between', async () => {
    await stage.withWatcher(async () => {
      const { metadata } = await stage.create();
      const { name } = metadata;
      await stage.forwarded(name, 'New');
      await stage.dealWith(name);
      for (let change = 1; change <= 3; change += 1) {
        await stage.edit(name, { spec: { maxLeases: change + 1 } });
        for (let write = 0; write < 20; write += 1) {
          const proxy = await stage.get(name);
          await stage.admin.patchStatus(proxy, { ...proxy.status, host: `h${change}-${write}` });
        }
        await stage.dealWith(name);
      }
      await stage.caughtUp();
      expect(stage.reasons(name)).toEqual(['New', 'SpecChanged', 'SpecChanged', 'SpecChanged']);
    });
  });

  test('one each for a label edit, our finalizer vanishing and a deletion; none for annotations or the end', async () => {
    await stage.withWatcher(async () => {
      const { metadata } = await stage.create();
      const { name, uid } = metadata;
      await stage.forwarded(name, 'New');
      await stage.dealWith(name);
      await stage.edit(name, { metadata: { labels: { pool: 'retail' } } });
      await stage.forwarded(name, 'New', 'LabelsChanged');
      await stage.dealWith(name);
      await stage.edit(name, { metadata: { annotations: { note: 'x' } } });
      await stage.edit(name, { metadata: { finalizers: null } });
      await stage.forwarded(name, 'New', 'LabelsChanged', 'FinalizerMissing');
      await stage.dealWith(name);
      await stage.remove(name);
      await stage.forwarded(name, 'New', 'LabelsChanged', 'FinalizerMissing', 'Deleting');
      await stage.admin.setFinalizers(await stage.get(name), []);
      await stage.caughtUp();
      expect(stage.reasons(name)).toHaveLength(4);
      const keys = stage.messages.filter((message) => message.name === name);
      expect(new Set(keys.map(({ orderingKey }) => orderingKey))).toEqual(new Set([uid]));
    });
  });

  test('one for a deletion that went past the finalizer', async () => {
    await stage.withWatcher(async () => {
      const { name } = (await stage.create()).metadata;
      await stage.forwarded(name, 'New');
      await stage.remove(name);
      await stage.forwarded(name, 'New', 'Gone');
      await stage.caughtUp();
      expect(stage.reasons(name)).toHaveLength(2);
    });
  });

  test('B3: one for each version of a Secret, its coming and its going included', async () => {
    const secrets = `/api/v1/namespaces/${stage.namespace}/secrets`;
    const body = { metadata: { name: 'login' }, stringData: { username: 'a', password: 'b' } };
    const version = async (): Promise<string> => {
      const reading = await stage.admin.readSecret(stage.namespace, 'login');
      return reading.kind === 'found' ? reading.version : 'missing';
    };
    await stage.withWatcher(async () => {
      const { name } = (await stage.create({ credentialsSecretRef: { name: 'login' } })).metadata;
      await stage.forwarded(name, 'New');
      await stage.dealWith(name, { login: 'missing' });
      await call(secrets, { method: 'POST', body });
      await stage.forwarded(name, 'New', 'SecretChanged');
      await stage.dealWith(name, { login: await version() });
      await stage.caughtUp();
      await mergePatch(`${secrets}/login`, { stringData: { password: 'c' } });
      await stage.forwarded(name, 'New', 'SecretChanged', 'SecretChanged');
      await stage.dealWith(name, { login: await version() });
      await call(`${secrets}/login`, { method: 'DELETE' });
      await stage.forwarded(name, 'New', 'SecretChanged', 'SecretChanged', 'SecretChanged');
      await stage.caughtUp();
      expect(stage.reasons(name)).toHaveLength(4);
    });
  });
});

describe('a restart', () => {
  test('forwards exactly the Proxies that status.observed does not cover', async () => {
    const covered = (await stage.create()).metadata.name;
    const edited = (await stage.create()).metadata.name;
    await stage.dealWith(covered);
    await stage.dealWith(edited);
    await stage.withWatcher(() => stage.caughtUp());
    expect([stage.reasons(covered), stage.reasons(edited)]).toEqual([[], []]);
    await stage.edit(edited, { spec: { maxLeases: 9 } });
    await stage.withWatcher(() => stage.caughtUp());
    expect([stage.reasons(covered), stage.reasons(edited)]).toEqual([[], ['SpecChanged']]);
  });
});

describe('the role of the watcher', () => {
  test('W8: is refused every write to a Proxy', async () => {
    const cluster = openAs('watcher');
    const proxy = await stage.create();
    await expect(cluster.patchStatus(proxy, { host: 'x' })).rejects.toMatchObject({ code: 'Unauthorised' });
    await expect(cluster.setFinalizers(proxy, [])).rejects.toMatchObject({ code: 'Unauthorised' });
    await cluster.close();
  });
});
