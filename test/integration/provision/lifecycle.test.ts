import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { GCP } from '../proxies.ts';
import { condition, startProvision, type Provision } from './fixture.ts';

let provision: Provision;

beforeAll(async () => {
  provision = await startProvision();
  // Loads the client library, which takes its time.
  await provision.provider.get('nobody', 'europe-west1-b');
});
afterAll(async () => {
  await provision.stop();
});

const calls = (method: 'instances.insert' | 'instances.delete' | 'instances.get', name?: string) =>
  provision.compute.standIn.control
    .calls({ method })
    .filter((made) => name === undefined || made.name === name);

const applied = async (spec: object = GCP): Promise<string> => {
  const name = await provision.apply(spec);
  expect(await provision.nudge(name)).toMatchObject({ status: 204 });
  return name;
};

const ready = async (spec: object = GCP): Promise<string> => {
  const name = await applied(spec);
  await provision.judge(name, 'Healthy');
  await provision.nudge(name);
  return name;
};

const machinesOf = async (name: string) => {
  const uid = (await provision.record(name))?.ref.uid;
  return provision.compute.standIn.control
    .instances()
    .filter(({ labels }) => labels['egress-proxy-uid'] === uid);
};

/** Its only machine. */
const machineOf = async (name: string) => {
  const [machine, ...others] = await machinesOf(name);
  if (!machine || others.length > 0) throw new Error(`${name} has not exactly one machine`);
  return machine;
};

describe('what happens in the cloud (B1)', () => {
  test('a machine that vanished is withdrawn and replaced under another name (W4)', async () => {
    const name = await ready();
    const before = await machineOf(name);
    await provision.compute.standIn.control.vanish(before.name);
    await provision.nudge(name);
    const after = await machineOf(name);
    expect(after.name).not.toBe(before.name);
    expect((await provision.get(name))?.status?.host).toBe(after.address);
  });

  test('a machine that was stopped is started again, with its new address as a new endpoint (row 46)', async () => {
    const name = await ready();
    const before = (await provision.record(name))?.serving;
    const machine = await machineOf(name);
    await provision.compute.standIn.control.stop(machine.name);
    await provision.nudge(name);
    const after = (await provision.record(name))?.serving;
    const { address } = await machineOf(name);
    expect(after).toMatchObject({
      machine: machine.name,
      verdict: { state: 'Unknown' },
      endpoint: { host: address },
    });
    expect(after?.endpoint.id).not.toBe(before?.endpoint.id);
  });
});

describe('replacement', () => {
  test('creates the new machine beside the old one, switches when it is healthy, then deletes (rows 58, 76)', async () => {
    const name = await ready();
    const old = await machineOf(name);
    await provision.edit(name, { gcp: { machineType: 'e2-small' } });
    await provision.nudge(name);
    const during = await provision.get(name);
    expect(during?.status).toMatchObject({ observedGeneration: 2, host: old.address });
    expect(['Ready', 'Healthy'].map((type) => condition(during, type)?.reason)).toEqual([
      'Replacing',
      'ProbeSucceeded',
    ]);
    expect(await machinesOf(name)).toHaveLength(2);

    await provision.judge(name, 'Healthy');
    await provision.nudge(name);
    const after = await provision.get(name);
    expect(condition(after, 'Ready')).toMatchObject({ status: 'True' });
    expect(after?.status).toMatchObject({ host: (await machineOf(name)).address });
    expect(after?.status).not.toHaveProperty('replacement');
    expect(calls('instances.delete', old.name)).toHaveLength(1);
  });

  test('waits for the leases of the old endpoint', async () => {
    const name = await ready();
    await provision.lease(name, 120_000);
    await provision.edit(name, { gcp: { machineType: 'e2-small' } });
    await provision.nudge(name);
    await provision.judge(name, 'Healthy');
    await provision.nudge(name);
    const record = await provision.record(name);
    expect(record?.draining).toHaveLength(1);
    expect(record?.wakeReason).toBe('Draining');
    expect(await machinesOf(name)).toHaveLength(2);
    expect(condition(await provision.get(name), 'Ready')?.status).toBe('True');
  });

  test('changes nothing about the machine for labels, bounds and checks', async () => {
    const name = await ready();
    const machine = await machineOf(name);
    await provision.edit(name, { maxLeases: 7, cordoned: true, healthCheck: { timeoutSeconds: 9 } });
    await provision.nudge(name);
    expect(await machinesOf(name)).toEqual([machine]);
    expect(await provision.record(name)).toMatchObject({ maxLeases: 7, cordoned: true });
    expect(condition(await provision.get(name), 'Ready')).toMatchObject({
      status: 'True',
      reason: 'Cordoned',
    });
  });
});

describe('deletion', () => {
  test('is seen through: one delete call, then the finalizer, then a tombstone (W1, K3)', async () => {
    const name = await ready();
    const machine = await machineOf(name);
    await provision.remove(name);
    await provision.nudge(name);
    expect(await provision.get(name)).toBeUndefined();
    expect(await machinesOf(name)).toEqual([]);
    expect(calls('instances.delete', machine.name)).toHaveLength(1);
    expect(await provision.record(name)).toMatchObject({ gone: true, machines: [], draining: [] });
  });

  test('closes the gate at once and waits for running leases', async () => {
    const name = await ready();
    await provision.lease(name, 120_000);
    await provision.remove(name);
    await provision.nudge(name);
    const proxy = await provision.get(name);
    expect(condition(proxy, 'Provisioned')).toMatchObject({ status: 'False', reason: 'Draining' });
    expect(proxy?.status).not.toHaveProperty('host');
    expect(await machinesOf(name)).toHaveLength(1);
    await provision.lease(name, 0);
    await provision.nudge(name);
    expect(await provision.get(name)).toBeUndefined();
  });

  test('of a Proxy whose machine is gone already ends in one call (row 44)', async () => {
    const name = await ready();
    const machine = await machineOf(name);
    await provision.compute.standIn.control.vanish(machine.name);
    await provision.remove(name);
    await provision.nudge(name);
    expect(await provision.get(name)).toBeUndefined();
  });

  test('takes a machine that is there although one answer said otherwise for what it is (row 43)', async () => {
    const name = await ready();
    const machine = await machineOf(name);
    await provision.remove(name);
    const { control } = provision.compute.standIn;
    control.addFault({
      kind: 'status',
      statuses: [404],
      method: 'instances.get',
      namePrefix: machine.name,
    });
    await provision.nudge(name);
    expect(await machinesOf(name)).toEqual([]);
    expect(await provision.get(name)).toBeUndefined();
  });

  test('sees a machine go although its delete call was answered with "not found" (row 43)', async () => {
    const name = await ready();
    const machine = await machineOf(name);
    await provision.remove(name);
    const { control } = provision.compute.standIn;
    control.addFault({
      kind: 'status',
      statuses: [404],
      method: 'instances.delete',
      namePrefix: machine.name,
    });
    await provision.nudge(name);
    expect(await machinesOf(name)).toEqual([]);
    expect(await provision.get(name)).toBeUndefined();
  });

  test('creates nothing for messages that come after it (rows 17, 54)', async () => {
    const name = await ready();
    await provision.remove(name);
    await provision.nudge(name);
    const inserts = calls('instances.insert').length;
    expect(await provision.nudge(name)).toMatchObject({ status: 204 });
    expect(calls('instances.insert')).toHaveLength(inserts);
  });
});
