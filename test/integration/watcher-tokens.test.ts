import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { afterAll, afterEach, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { z } from 'zod';

import { applyObject } from '#test/services/api.ts';

import { api, call, randomName } from './proxies.ts';
import { QUICK, openStage, type RunningWatcher, type Stage } from './watcher/stage.ts';

const PATIENCE = { timeout: 60_000, interval: 50 };
/** The client reads the file of a token again after a minute. */
const A_MINUTE_LATER_MS = 61_000;

let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
});
afterAll(() => stage.close());
afterEach(() => vi.useRealTimers());

/** A kubeconfig with the real server, in which `user` says how to be somebody. */
const kubeconfigOf = (user: object): string => {
  const { server, caFile } = inject('cluster');
  const file = join(stage.folder, randomName('kubeconfig'));
  const cluster = { server, 'certificate-authority-data': readFileSync(caFile).toString('base64') };
  writeFileSync(
    file,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'local', cluster }],
      users: [{ name: 'watcher', user }],
      contexts: [{ name: 'watcher', context: { cluster: 'local', user: 'watcher' } }],
      'current-context': 'watcher',
    }),
  );
  return file;
};

/** As the kubelet does it: never half a file. */
const replaceFile = (file: string, content: string): void => {
  writeFileSync(`${file}.new`, content);
  renameSync(`${file}.new`, file);
};

const failures = ({ lines }: RunningWatcher): number =>
  lines.filter((line) => line.includes('the watch broke')).length;

/** A service account with the watcher's role. */
const serviceAccount = async (): Promise<string> => {
  const name = randomName('watcher');
  const { namespace } = stage;
  await applyObject(api(), { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } });
  await applyObject(api(), {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name, namespace },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'egress-proxies-watcher' },
    subjects: [{ kind: 'ServiceAccount', name, namespace }],
  });
  return name;
};

const created = z.object({ metadata: z.object({ name: z.string(), uid: z.string() }) });
const issued = z.object({ status: z.object({ token: z.string() }) });

/** A token of this account, and how to end its life before its time. */
const issueToken = async (account: string) => {
  const path = `/api/v1/namespaces/${stage.namespace}`;
  const secret = await call(`${path}/secrets`, {
    method: 'POST',
    body: { apiVersion: 'v1', kind: 'Secret', metadata: { name: randomName('bound') } },
  });
  const { name, uid } = created.parse(secret.body).metadata;
  const answer = await call(`${path}/serviceaccounts/${account}/token`, {
    method: 'POST',
    body: {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { boundObjectRef: { apiVersion: 'v1', kind: 'Secret', name, uid } },
    },
  });
  return {
    token: issued.parse(answer.body).status.token,
    revoke: () => call(`${path}/secrets/${name}`, { method: 'DELETE' }),
  };
};

/** What a plugin prints. */
const credential = (livesForMs: number): string =>
  JSON.stringify({
    apiVersion: 'client.authentication.k8s.io/v1',
    kind: 'ExecCredential',
    status: {
      token: inject('cluster').tokens.watcher,
      expirationTimestamp: new Date(Date.now() + livesForMs).toISOString(),
    },
  });

describe('a watcher whose credentials change while it runs', () => {
  test('row 9: reads the file of its token again, after tokens that the server refuses', async () => {
    const account = await serviceAccount();
    const first = await issueToken(account);
    const tokenFile = join(stage.folder, randomName('token'));
    writeFileSync(tokenFile, first.token);
    const { name } = (await stage.create()).metadata;
    await stage.dealWith(name);
    // What the client makes of a Pod's own service account.
    const kubeconfig = kubeconfigOf({ 'auth-provider': { name: 'tokenFile', config: { tokenFile } } });
    await stage.withWatcher(
      async (watcher) => {
        await first.revoke();
        await vi.waitUntil(() => failures(watcher) >= 1, PATIENCE);
        await stage.edit(name, { spec: { maxLeases: 7 } });
        replaceFile(tokenFile, 'not yet valid');
        vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + A_MINUTE_LATER_MS });
        const before = failures(watcher);
        await vi.waitUntil(() => failures(watcher) >= before + 2, PATIENCE);
        expect(stage.reasons(name)).toEqual([]);
        replaceFile(tokenFile, (await issueToken(account)).token);
        vi.setSystemTime(Date.now() + A_MINUTE_LATER_MS);
        await stage.forwarded(name, 'SpecChanged');
        vi.useRealTimers();
        await stage.caughtUp();
        expect(stage.reasons(name)).toEqual(['SpecChanged']);
      },
      { kubeconfig, times: QUICK },
    );
  });

  test('row 10: outlives a credential plugin that fails when its token has expired', async () => {
    const { name } = (await stage.create()).metadata;
    await stage.dealWith(name);
    const file = join(stage.folder, randomName('credential'));
    writeFileSync(file, credential(2000));
    const exec = {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: '/bin/sh',
      args: ['-c', `cat ${file}`],
      interactiveMode: 'Never',
    };
    await stage.withWatcher(
      async (watcher) => {
        renameSync(file, `${file}.away`);
        await vi.waitUntil(() => failures(watcher) >= 2, PATIENCE);
        await stage.edit(name, { spec: { maxLeases: 7 } });
        replaceFile(file, credential(3_600_000));
        await stage.forwarded(name, 'SpecChanged');
        await stage.caughtUp();
        expect(stage.reasons(name)).toEqual(['SpecChanged']);
      },
      { kubeconfig: kubeconfigOf({ exec }), times: QUICK },
    );
  });
});

describe('a watcher that runs for long', () => {
  test('row 6: goes on from where a quiet watch ended, without a list or a message', async () => {
    const { name } = (await stage.create()).metadata;
    await stage.dealWith(name);
    let [watches, lists] = [0, 0];
    await stage.withWatcher(
      async () => {
        await vi.waitUntil(() => watches >= 6, PATIENCE);
        expect(lists).toBe(1);
        expect(stage.reasons(name)).toEqual([]);
        await stage.edit(name, { spec: { maxLeases: 7 } });
        await stage.forwarded(name, 'SpecChanged');
      },
      {
        times: QUICK,
        cluster: (cluster) => ({
          ...cluster,
          listNamespace: (...given) => {
            lists += 1;
            return cluster.listNamespace(...given);
          },
          watchProxies: (options) => {
            watches += 1;
            return cluster.watchProxies(options);
          },
        }),
      },
    );
  });

  test('row 8: remembers nothing of a hundred Proxies that came and went', async () => {
    await stage.withWatcher(async ({ watcher }) => {
      await stage.caughtUp();
      const before = watcher.sizes();
      const gone: string[] = [];
      for (let n = 0; n < 100; n += 1) {
        const { name } = (await stage.create()).metadata;
        await stage.remove(name);
        gone.push(name);
      }
      await vi.waitFor(() => {
        for (const name of gone) expect(stage.reasons(name).at(-1)).toBe('Gone');
      }, PATIENCE);
      expect(watcher.sizes()).toEqual(before);
    });
  });
});
