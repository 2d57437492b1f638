import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, describe, expect, test } from 'vitest';
import { z } from 'zod';

import { systemClock } from '#shared/app/clock.ts';
import { makeLog } from '#shared/app/log.ts';
import { clusterOptions, openCluster, type ClusterOptions } from '#shared/kubernetes/cluster.ts';
import { lazyConnection } from '#shared/kubernetes/lazy-connection.ts';
import { checkedClusterOptions } from '#shared/kubernetes/options.ts';

const ROOT = join(import.meta.dirname, '../../..');
const folder = mkdtempSync(join(tmpdir(), 'kubeconfig-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const kubeconfig = (name: string, cluster: object, user: object = { token: 't' }): string => {
  const file = join(folder, name);
  const config = {
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
  writeFileSync(file, JSON.stringify(config));
  return file;
};

const open = (options: ClusterOptions) =>
  openCluster(options, { clock: systemClock, log: makeLog(() => undefined), component: 'test' });

const manifest = z.object({ engines: z.object({ node: z.string() }) });

/** The least major version of Node.js that a package takes. */
const leastNode = (path: string): number => {
  const { engines } = manifest.parse(JSON.parse(readFileSync(join(ROOT, path), 'utf8')));
  return Number(/\d+/.exec(engines.node)?.[0]);
};

test('row 12: no Node.js is admitted on which the HTTP client of the cluster cannot be loaded', () => {
  const needed = leastNode('node_modules/undici/package.json');
  expect(needed).toBeGreaterThan(20);
  expect(leastNode('package.json')).toBeGreaterThanOrEqual(needed);
});

describe('the configuration of a cluster', () => {
  test.each([
    ['a kubeconfig that is not there', () => ({ kubeconfig: join(folder, 'none') })],
    [
      'a server whose certificate is not verified',
      () => ({
        kubeconfig: kubeconfig('insecure', {
          server: 'https://127.0.0.1:1',
          'insecure-skip-tls-verify': true,
        }),
      }),
    ],
    ['row 12: plain http', () => ({ kubeconfig: kubeconfig('plain', { server: 'http://127.0.0.1:1' }) })],
    ['a DNS endpoint over plain http', () => ({ endpoint: 'http://gke.example.com' })],
  ])('is refused: %s', (_, options) => {
    expect(() => open(options())).toThrow(expect.objectContaining({ code: 'NotConfigured' }));
  });

  test('is taken from KUBECONFIG, then from CLUSTER_ENDPOINT, and is required', () => {
    const CLUSTER_ENDPOINT = 'https://gke.example.com';
    expect(clusterOptions({ KUBECONFIG: 'file', CLUSTER_ENDPOINT })).toEqual({ kubeconfig: 'file' });
    expect(clusterOptions({ CLUSTER_ENDPOINT })).toEqual({ endpoint: CLUSTER_ENDPOINT });
    expect(() => clusterOptions({})).toThrow('KUBECONFIG or CLUSTER_ENDPOINT');
  });

  test.each([
    ['a kubeconfig that is not there', { KUBECONFIG: join(folder, 'none') }, 'none is not readable'],
    ['a DNS endpoint over plain http', { CLUSTER_ENDPOINT: 'http://gke.example.com' }, 'must be https'],
    ['none', {}, 'is required'],
  ])('is refused at the start of a function, before the client is loaded: %s', (_, env, problem) => {
    const start = (): unknown => checkedClusterOptions(env);
    expect(start).toThrow(problem);
    expect(start).toThrow(expect.objectContaining({ code: 'NotConfigured' }));
  });

  test('that only the client finds unusable is told by each request of a function', async () => {
    const options = { kubeconfig: kubeconfig('plain-late', { server: 'http://127.0.0.1:1' }) };
    const connection = lazyConnection(checkedClusterOptions({ KUBECONFIG: options.kubeconfig }), 'test');
    const request = { method: 'GET', path: '/api' } as const;
    for (const _ of [1, 2]) {
      await expect(connection.send(request)).rejects.toMatchObject({ code: 'NotConfigured' });
    }
    await connection.close();
  });

  test('row 10: a credential plugin that hangs holds nothing up beyond its deadline', async () => {
    const ended = join(folder, 'plugin-ended');
    const exec = {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: '/bin/sh',
      args: ['-c', `sleep 4; touch ${ended}`],
      interactiveMode: 'Never',
    };
    const cluster = open({ kubeconfig: kubeconfig('hangs', { server: 'https://127.0.0.1:1' }, { exec }) });
    const signal = new AbortController().signal;
    const options = { namespace: 'n', resourceVersion: '1', signal, timeoutSeconds: 1, silenceMs: 50 };
    const watch = cluster.watchProxies(options)[Symbol.asyncIterator]();
    await expect(watch.next()).rejects.toMatchObject({ code: 'Transient' });
    expect(existsSync(ended)).toBe(false);
    await cluster.close();
  });

  test('opening a cluster contacts nobody, a call to one that is away is Transient', async () => {
    const cluster = open({ kubeconfig: kubeconfig('away', { server: 'https://127.0.0.1:1' }) });
    await expect(cluster.getProxy({ namespace: 'n', name: 'p' })).rejects.toMatchObject({
      code: 'Transient',
    });
    await cluster.close();
  });
});
