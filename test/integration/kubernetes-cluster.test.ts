import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

import { describe, expect, inject, test } from 'vitest';

import { call } from './proxies.ts';
import { openAs } from './watcher/stage.ts';

describe('the cluster', () => {
  test('is known by the UID of kube-system, to gc', async () => {
    const cluster = openAs('gc');
    const { body } = await call('/api/v1/namespaces/kube-system');
    expect(body).toMatchObject({ metadata: { uid: await cluster.clusterId() } });
    await cluster.close();
  });

  const SCRIPT = `
    import { openCluster } from '#shared/kubernetes/cluster.ts';
    const [endpoint, ...tokens] = process.argv.slice(1);
    const log = { error: console.error };
    const asked = [];
    const accessToken = async (fresh) => (asked.push(fresh), tokens.shift());
    const cluster = openCluster({ endpoint, accessToken }, { clock: { now: Date.now }, log, component: 'test' });
    for (let call = 0; call < 2; call += 1) {
      console.log(await cluster.clusterId().then((id) => 'id ' + id, (error) => error.code));
    }
    console.log('fresh ' + asked);
    await cluster.close();
  `;
  const overEndpoint = async (env: Readonly<Record<string, string>>, ...tokens: readonly string[]) => {
    const args = ['--input-type=module', '--eval', SCRIPT, inject('cluster').server, ...tokens];
    const { stdout } = await promisify(execFile)(process.execPath, args, { env: { ...process.env, ...env } });
    return stdout.trim().split('\n');
  };

  test('row 87: a token is asked for each time; one that is refused is renewed, and the call made once more', async () => {
    const { caFile, tokens } = inject('cluster');
    const cluster = openAs('gc');
    const id = `id ${await cluster.clusterId()}`;
    await cluster.close();
    const trusted = { NODE_EXTRA_CA_CERTS: caFile };
    const [once, twice] = await Promise.all([
      overEndpoint(trusted, 'stale', tokens.gc, tokens.gc),
      overEndpoint(trusted, 'stale', 'staler', tokens.gc),
    ]);
    expect(once).toEqual([id, id, 'fresh false,true,false']);
    expect(twice).toEqual(['Unauthorised', id, 'fresh false,true,false']);
  });

  test('row 88: trusted authorities only', async () => {
    const { tokens } = inject('cluster');
    expect(await overEndpoint({}, tokens.gc, tokens.gc)).toEqual([
      'Transient',
      'Transient',
      'fresh false,false',
    ]);
  });
});
