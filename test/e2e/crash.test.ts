import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { callApi } from '#test/services/api.ts';
import { applyFile } from '#test/services/apply.ts';

import { condition, gcpSpec, poll, startWorld, type World } from './world.ts';

let world: World;

beforeAll(async () => {
  world = await startWorld('crash');
});
afterAll(async () => {
  await world.stack.stop();
});

const machines = () => world.stack.cloud.compute.control.instances();

describe('crashes and outages', () => {
  test('W2: provision killed between the create call and its status write leads to one machine, adopted', async () => {
    const { control } = world.stack.cloud.compute;
    control.resetCalls();
    // The call has been made, its answer is on the way for long enough to die in between.
    control.addFault({ kind: 'slowResponse', method: 'instances.insert', ms: 3000, count: 1 });
    await world.apply('adopted', gcpSpec());
    await poll('the machine exists', () => machines().find(({ labels }) => labels['egress-proxy-uid']));
    expect((await world.get('adopted'))?.status.providerID).toBeUndefined();
    world.stack.deployments.instances.provision.kill('SIGKILL');
    await world.ready('adopted');
    expect(machines()).toHaveLength(1);
    const inserts = control.calls({ method: 'instances.insert' });
    expect(inserts.filter(({ status }) => status === 200)).toHaveLength(1);
  });

  test('row 21: SIGTERM in mid-pass is harmless: the message comes again, and so do those that came meanwhile', async () => {
    const { control } = world.stack.cloud.compute;
    const { provision } = world.stack.deployments.instances;
    control.resetCalls();
    control.addFault({ kind: 'slowResponse', method: 'instances.insert', ms: 3000, count: 1 });
    const known = new Set(machines().map(({ name }) => name));
    await world.apply('terminated', gcpSpec());
    await poll('the machine exists', () => machines().find(({ name }) => !known.has(name)));
    const before = provision.pid();
    provision.kill('SIGTERM');
    const { host, port } = world.stack.cloud.externalProxy;
    await world.apply('meanwhile', { maxLeases: 5, endpoint: { host, port } });
    const [proxy] = await Promise.all([world.ready('terminated'), world.ready('meanwhile')]);
    expect(provision.pid()).not.toBe(before);
    const own = machines().filter(({ labels }) => labels['egress-proxy-uid'] === proxy.metadata.uid);
    expect(own.map(({ address }) => address)).toEqual([proxy.status.host]);
    const inserts = control.calls({ method: 'instances.insert' });
    expect(inserts.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(control.countCalls({ method: 'instances.delete' })).toBe(0);
  });

  test('rows 38, 40: a zone without capacity is left for the next, and nothing stays behind in it', async () => {
    const { control } = world.stack.cloud.compute;
    control.addFault({ kind: 'stockOut', method: 'instances.insert', zone: 'europe-west1-b' });
    await world.apply('second-zone', gcpSpec());
    const proxy = await world.ready('second-zone');
    control.clearFaults();
    expect(proxy.status.zone).toBe('europe-west1-c');
    expect(machines().filter(({ labels }) => labels['egress-proxy-uid'] === proxy.metadata.uid)).toHaveLength(
      1,
    );
  });

  test('B1: a machine that vanished is withdrawn and replaced', async () => {
    const { control } = world.stack.cloud.compute;
    const before = await world.ready('adopted');
    const machine = machines().find(({ labels }) => labels['egress-proxy-uid'] === before.metadata.uid);
    if (!machine) throw new Error('there is no machine');
    await control.vanish(machine.name);
    // What Cloud Scheduler does by the minute. A record that has just been written is not compared with an older list.
    await poll('it is withdrawn or replaced', async () => {
      const run = await fetch(world.stack.deployments.urls.gc, { method: 'POST' });
      expect(run.status).toBe(200);
      const proxy = await world.get('adopted');
      return proxy?.status.providerID === before.status.providerID ? undefined : true;
    });
    const after = await world.until(
      'adopted',
      'has another machine',
      (proxy) => condition(proxy, 'Ready', 'True') && proxy?.status.providerID !== before.status.providerID,
    );
    expect(after?.status.providerID).toBeDefined();
  });

  test('rows 55, 82: a CRD that is deleted takes its Proxies and their machines along; without it gc deletes nothing and says why', async () => {
    const crd = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/proxies.crawl.example.com';
    const collect = async () => {
      const answer = await fetch(world.stack.deployments.urls.gc, { method: 'POST' });
      return { status: answer.status, text: await answer.text() };
    };
    await callApi(world.api, crd, { method: 'DELETE' });
    await poll('the machines are deleted', () => (machines().length === 0 ? true : undefined), 90_000);
    await poll('the CRD is gone', async () =>
      (await callApi(world.api, crd)).status === 404 ? true : undefined,
    );
    const without = await collect();
    expect(without.status).toBe(503);
    expect(without.text).toContain('Proxies could not be listed');
    await applyFile(world.api, join(import.meta.dirname, '../../crds/proxy.yaml'));
    await poll('gc sees Proxies again', async () => ((await collect()).status === 200 ? true : undefined));
    await world.apply('after', gcpSpec());
    expect((await world.ready('after')).status.host).toBeDefined();
  });
});
