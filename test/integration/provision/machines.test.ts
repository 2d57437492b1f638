import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { GCP } from '../proxies.ts';
import { condition, startProvision, type Provision } from './fixture.ts';
import { SystemError } from '#shared/app/errors.ts';
import type { MachineProvider } from '#shared/domain/machine.ts';

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

describe('a gcp Proxy', () => {
  test('is provisioned by one message: finalizer, one insert, one published endpoint, a probe (K2, W6)', async () => {
    const name = await applied();
    const proxy = await provision.get(name);
    expect(proxy?.metadata.finalizers).toEqual(['crawl.example.com/proxy']);
    expect(condition(proxy, 'Provisioned')).toMatchObject({ status: 'True', observedGeneration: 1 });
    expect(condition(proxy, 'Ready')).toMatchObject({ status: 'False', reason: 'NotHealthy' });
    expect(proxy?.status).toMatchObject({
      observedGeneration: 1,
      installation: 'prod',
      zone: 'europe-west1-b',
    });
    const machine = await machineOf(name);
    expect(proxy?.status?.host).toBe(machine.address);
    expect(calls('instances.insert', machine.name)).toHaveLength(1);
    expect(calls('instances.get', machine.name)).toHaveLength(1);
    expect(provision.probes).toContain(proxy?.metadata.uid);

    await provision.judge(name, 'Healthy');
    await provision.nudge(name);
    const after = await provision.get(name);
    expect(condition(after, 'Ready')).toMatchObject({ status: 'True', reason: 'Ready' });
    expect(after?.status?.exitAddress).toBe('192.0.2.1');
    expect(await provision.record(name)).not.toHaveProperty('wakeAt');
  });

  test('that has converged is not written again (K1)', async () => {
    const name = await ready();
    const before = await provision.get(name);
    await provision.nudge(name);
    expect((await provision.get(name))?.metadata.resourceVersion).toBe(before?.metadata.resourceVersion);
  });

  test('has one machine when provision dies between the create call and its status write (W2)', async () => {
    const name = await provision.apply(GCP);
    const dying: MachineProvider = {
      ...provision.provider,
      create: async (...args) => {
        await provision.provider.create(...args);
        throw new SystemError('Transient', 'killed here');
      },
    };
    expect(await provision.nudge(name, { providers: { gcp: dying } })).toMatchObject({ status: 503 });
    expect((await provision.get(name))?.status).toBeUndefined();
    await provision.nudge(name);
    const machine = await machineOf(name);
    expect(calls('instances.insert', machine.name)).toHaveLength(1);
    expect(condition(await provision.get(name), 'Provisioned')?.status).toBe('True');
  });

  test('has one machine when the same message comes three times at once (row 14)', async () => {
    const name = await provision.apply(GCP);
    const replies = await Promise.all([1, 2, 3].map(() => provision.nudge(name)));
    expect(replies.map(({ status }) => status)).toEqual([204, 204, 204]);
    expect(await machinesOf(name)).toHaveLength(1);
  });

  test('takes the next zone when one has no capacity (row 38)', async () => {
    const { control } = provision.compute.standIn;
    const fault = control.addFault({ kind: 'stockOut', zone: 'europe-west1-b' });
    const zones = ['europe-west1-b', 'europe-west1-c'];
    const name = await applied({ ...GCP, gcp: { ...GCP.gcp, zones } });
    control.removeFault(fault);
    expect((await provision.get(name))?.status?.zone).toBe('europe-west1-c');
    expect(await machinesOf(name)).toHaveLength(1);
  });

  test('shows a refused quota in the words of the provider, and recovers by itself', async () => {
    const { control } = provision.compute.standIn;
    const fault = control.addFault({ kind: 'quota', method: 'instances.insert' });
    const name = await applied();
    control.removeFault(fault);
    const proxy = await provision.get(name);
    expect(condition(proxy, 'Provisioned')).toMatchObject({ status: 'False', reason: 'QuotaExceeded' });
    expect(condition(proxy, 'Provisioned')?.message).toContain('QUOTA_EXCEEDED');
    const record = await provision.record(name);
    expect(record?.wakeAt).toBeGreaterThan(0);
    const later = (record?.wakeAt ?? 0) + 1;
    expect(later - Date.now(), 'woken within ten minutes').toBeLessThanOrEqual(600_000);
  });

  test('says what is wrong with its spec, and can be deleted at once (row 15)', async () => {
    const name = await applied({ ...GCP, gcp: { ...GCP.gcp, zones: ['nowhere-north1-a'] } });
    const proxy = await provision.get(name);
    expect(condition(proxy, 'Provisioned')).toMatchObject({ status: 'False', reason: 'InvalidSpec' });
    expect(condition(proxy, 'Stalled')?.status).toBe('True');
    expect(proxy?.status?.observedGeneration).toBe(1);
    await provision.remove(name);
    expect(await provision.nudge(name)).toMatchObject({ status: 204 });
    expect(await provision.get(name)).toBeUndefined();
  });

  test('is answered with 503 while its zone does not answer, and nothing is lost (row 47)', async () => {
    const name = await ready();
    const { control } = provision.compute.standIn;
    const fault = control.addFault({ kind: 'unreachableZone', zone: 'europe-west1-b' });
    expect(await provision.nudge(name)).toMatchObject({ status: 503 });
    control.removeFault(fault);
    expect((await provision.record(name))?.serving).toBeDefined();
    expect(condition(await provision.get(name), 'Ready')?.status).toBe('True');
  });
});
