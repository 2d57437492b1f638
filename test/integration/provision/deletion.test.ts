import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';

import { systemClock as clock } from '#shared/app/clock.ts';
import { makeLog } from '#shared/app/log.ts';
import type { MachineProvider } from '#shared/domain/machine.ts';
import { openCluster } from '#shared/kubernetes/cluster.ts';
import { callApi } from '#test/services/api.ts';

import { GCP, api, mergePatch, proxyPath } from '../proxies.ts';
import { cloudOf } from './cloud.ts';
import { condition, startProvision, type Provision } from './fixture.ts';

let provision: Provision;
let cloud: ReturnType<typeof cloudOf>;

beforeAll(async () => {
  provision = await startProvision();
  cloud = cloudOf(provision);
  // Loads the client library, which takes its time.
  await provision.provider.get('nobody', 'europe-west1-b');
});
afterAll(async () => {
  await provision.stop();
});

describe('deletion', () => {
  test('row 43: 403 and one 404 are no proof that a machine is gone (K3)', async () => {
    const name = await cloud.ready();
    const machine = await cloud.machineOf(name);
    await provision.remove(name);
    cloud.control.addFault({
      kind: 'status',
      statuses: [403, 404],
      method: 'instances.get',
      namePrefix: machine.name,
      count: 1,
    });
    await provision.nudge(name);
    await provision.nudge(name);
    expect(await provision.get(name)).toBeUndefined();
    expect(await cloud.machinesOf(name)).toEqual([]);
    expect(cloud.deletes(machine.name)).toBe(1);
  });

  test('ends only when the boot disk has gone too, which it deletes where its machine left it behind (K3)', async () => {
    const name = await cloud.ready();
    const machine = await cloud.machineOf(name);
    cloud.control.addFault({ kind: 'keptDisk', namePrefix: machine.name, count: 1 });
    cloud.control.addFault({
      kind: 'operationError',
      method: 'disks.delete',
      code: 'RESOURCE_IN_USE_BY_ANOTHER_RESOURCE',
      message: 'The disk is being snapshotted.',
      namePrefix: machine.name,
      count: 1,
    });
    await provision.remove(name);
    await provision.nudge(name);
    expect(condition(await provision.get(name), 'Provisioned')?.message).toContain('being snapshotted');
    expect(await cloud.disks('europe-west1-b')).toContain(machine.name);
    await provision.nudge(name);
    expect(await provision.get(name)).toBeUndefined();
    expect(await cloud.disks('europe-west1-b')).not.toContain(machine.name);
    expect(cloud.deletes(machine.name)).toBe(1);
  });

  test('row 53: while the machine is being asked for leaks nothing: the finalizer is there before (K2)', async () => {
    const name = await provision.apply(GCP);
    const racing: MachineProvider = {
      ...provision.provider,
      create: async (...args) => {
        await provision.remove(name);
        expect((await provision.get(name))?.metadata.deletionTimestamp).toBeDefined();
        return provision.provider.create(...args);
      },
    };
    await provision.nudge(name, { providers: { gcp: racing } });
    await provision.nudge(name);
    expect(await provision.get(name)).toBeUndefined();
    expect(await cloud.machinesOf(name)).toEqual([]);
  });

  test('row 56: of a Proxy without our finalizer: none is added, nothing is made, the message is done with', async () => {
    const name = await provision.apply(GCP);
    const path = proxyPath(provision.namespace, name);
    await mergePatch(path, { metadata: { finalizers: ['example.com/other'] } });
    await provision.remove(name);
    const before = cloud.control.countCalls();
    expect(await provision.nudge(name)).toMatchObject({ status: 204 });
    expect((await provision.get(name))?.metadata.finalizers).toEqual(['example.com/other']);
    expect(cloud.control.countCalls()).toBe(before);
    await mergePatch(path, { metadata: { finalizers: null } });
  });

  test('row 55: of a whole namespace completes, although no Event can be written there any more', async () => {
    const own = await startProvision();
    // Rights of the whole cluster: those that a namespace gives go with it.
    const log = makeLog(() => undefined);
    const cluster = openCluster(
      { kubeconfig: inject('cluster').kubeconfigs.admin },
      { clock, log, component: 'provision' },
    );
    const get = (name: string) => cluster.getProxy({ namespace: own.namespace, name });
    try {
      const names = await Promise.all([1, 2, 3].map(() => own.apply(GCP)));
      await Promise.all(names.map((name) => own.nudge(name)));
      await callApi(api(), `/api/v1/namespaces/${own.namespace}`, { method: 'DELETE' });
      await expect
        .poll(async () => (await get(names[2] ?? ''))?.metadata.deletionTimestamp, { timeout: 20_000 })
        .toBeDefined();
      await Promise.all(names.map((name) => own.nudge(name, { cluster })));
      expect(await Promise.all(names.map(get))).toEqual([undefined, undefined, undefined]);
      expect(own.compute.standIn.control.instances()).toEqual([]);
    } finally {
      await cluster.close();
      await own.stop();
    }
  });
});
