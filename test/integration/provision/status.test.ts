import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';

import { systemClock as clock } from '#shared/app/clock.ts';
import { makeLog } from '#shared/app/log.ts';
import { openCluster, type Cluster } from '#shared/kubernetes/cluster.ts';

import { GCP, mergePatch, proxyPath, stored } from '../proxies.ts';
import { cloudOf } from './cloud.ts';
import { condition, startProvision, type Provision } from './fixture.ts';

let provision: Provision;
let cloud: ReturnType<typeof cloudOf>;
let cluster: Cluster;

beforeAll(async () => {
  provision = await startProvision();
  cloud = cloudOf(provision);
  cluster = openCluster(
    { kubeconfig: inject('cluster').kubeconfigs.provision },
    { clock, log: makeLog(() => undefined), component: 'provision' },
  );
  // Loads the client library, which takes its time.
  await provision.provider.get('nobody', 'europe-west1-b');
});
afterAll(async () => {
  await cluster.close();
  await provision.stop();
});

const pathOf = (name: string): string => proxyPath(provision.namespace, name);

/** As another controller writes it. */
const FOREIGN = {
  type: 'Audited',
  status: 'True',
  reason: 'Seen',
  message: 'Somebody looked.',
  lastTransitionTime: '2026-11-30T12:00:00Z',
};

describe('the status of a Proxy', () => {
  test('row 57: a condition of another controller stays as it is while ours change', async () => {
    const name = await provision.apply(GCP);
    stored(await mergePatch(`${pathOf(name)}/status`, { status: { conditions: [FOREIGN] } }));
    await provision.nudge(name);
    await provision.judge(name, 'Healthy');
    await provision.nudge(name);
    const proxy = await provision.get(name);
    expect(condition(proxy, 'Ready')?.status).toBe('True');
    expect(condition(proxy, 'Audited')).toEqual(FOREIGN);
    expect(proxy?.status?.conditions).toHaveLength(5);
  });

  test('row 57, W2: a 409 on the status write is judged again, and nothing is lost or made twice', async () => {
    const name = await provision.apply(GCP);
    let interrupted = 0;
    const racing: Cluster = {
      ...cluster,
      patchStatus: async (proxy, status) => {
        if (interrupted < 2) {
          interrupted += 1;
          stored(await mergePatch(pathOf(name), { metadata: { labels: { edit: String(interrupted) } } }));
        }
        return cluster.patchStatus(proxy, status);
      },
    };
    expect(await provision.nudge(name, { cluster: racing })).toMatchObject({ status: 204 });
    expect(interrupted).toBe(2);
    const machine = await cloud.machineOf(name);
    expect(cloud.inserts(machine.name)).toBe(1);
    const proxy = await provision.get(name);
    expect(condition(proxy, 'Provisioned')?.status).toBe('True');
    expect(proxy?.status).toMatchObject({ host: machine.address });
    expect((await provision.record(name))?.labels).toEqual({ edit: '2' });
  });

  test('row 58, W5: right after an edit it still speaks of the generation before, and Ready only of one that has converged', async () => {
    const name = await cloud.ready();
    await provision.edit(name, { gcp: { machineType: 'e2-small' } });
    const edited = await provision.get(name);
    expect(edited?.metadata.generation).toBe(2);
    // What kstatus and `kubectl wait` compare before they believe a condition.
    expect(edited?.status?.observedGeneration).toBe(1);
    expect(condition(edited, 'Ready')).toMatchObject({ status: 'True', observedGeneration: 1 });
    await provision.nudge(name);
    const during = await provision.get(name);
    expect(during?.status?.observedGeneration).toBe(2);
    expect(condition(during, 'Ready')).toMatchObject({ status: 'False', observedGeneration: 2 });

    await provision.judge(name, 'Healthy');
    await provision.nudge(name);
    await provision.edit(name, { maxLeases: 9 });
    expect(condition(await provision.get(name), 'Ready')?.observedGeneration).toBe(2);
    await provision.nudge(name);
    const after = await provision.get(name);
    expect(after?.status?.observedGeneration).toBe(3);
    expect(condition(after, 'Ready')).toMatchObject({ status: 'True', observedGeneration: 3 });
  });
});
