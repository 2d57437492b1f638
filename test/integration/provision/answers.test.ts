import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { SystemError } from '#shared/app/errors.ts';
import type { MachineProvider } from '#shared/domain/machine.ts';
import { machineName } from '#shared/domain/names.ts';

import { GCP } from '../proxies.ts';
import { cloudOf, eventsOf } from './cloud.ts';
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

const ZONES = ['europe-west1-b', 'europe-west1-c', 'europe-west1-d'];
const [B = '', C = '', D = ''] = ZONES;
const gcp = (change: object) => ({ ...GCP, gcp: { ...GCP.gcp, ...change } });
const provisioned = async (name: string) => condition(await provision.get(name), 'Provisioned');

/** What comes after the record's machine of the highest incarnation. */
const nextName = async (name: string): Promise<string> => {
  const { ref, incarnation = 0, machines = [] } = (await provision.record(name)) ?? {};
  return machineName('prod', ref?.uid ?? '', machines[0]?.hash ?? '', incarnation + 1);
};

const foreign = (name: string, labels: object = {}) => ({
  name,
  labels,
  machineType: `zones/${B}/machineTypes/e2-micro`,
  disks: [{ boot: true, autoDelete: true, initializeParams: { sourceImage: GCP.gcp.image } }],
  networkInterfaces: [{}],
});

/** A new Proxy, and a machine of its own under the very name that it will ask for, which nobody recorded. */
const withUnrecorded = async () => {
  const like = await cloud.ready();
  const { labels } = await cloud.machineOf(like);
  const { machines = [] } = (await provision.record(like)) ?? {};
  const name = await provision.apply(GCP);
  const uid = (await provision.get(name))?.metadata.uid ?? '';
  const own = machineName('prod', uid, machines[0]?.hash ?? '', 1);
  const of = { ...labels, 'egress-proxy-uid': uid };
  await cloud.call('POST', `zones/${B}/instances`, foreign(own, of));
  await expect
    .poll(() => cloud.control.instances().find((each) => each.name === own)?.status)
    .toBe('RUNNING');
  return { name, own };
};

describe('a create call', () => {
  test('row 38: that finds no capacity goes on in the zone that the provider names', async () => {
    const fault = cloud.control.addFault({ kind: 'stockOut', zone: B, details: true, available: [D] });
    const name = await cloud.applied(gcp({ zones: ZONES }));
    cloud.control.removeFault(fault);
    expect((await cloud.machineOf(name)).zone).toBe(D);
  });

  test("row 39: that fails is told in the provider's own code and text, and asked of a person", async () => {
    const fault = cloud.control.addFault({
      kind: 'operationError',
      method: 'instances.insert',
      code: 'UNSUPPORTED_OPERATION',
      message: 'This image cannot boot here.',
    });
    const name = await cloud.applied();
    cloud.control.removeFault(fault);
    expect((await provisioned(name))?.reason).toBe('InvalidSpec');
    expect((await provisioned(name))?.message).toContain(
      'UNSUPPORTED_OPERATION: This image cannot boot here.',
    );
    expect(condition(await provision.get(name), 'Stalled')?.status).toBe('True');
  });

  test('row 40: that timed out and succeeds late in another zone leaves one machine', async () => {
    const late: (() => Promise<unknown>)[] = [];
    const silent: MachineProvider = {
      ...provision.provider,
      create: (...args) => {
        late.push(() => provision.provider.create(...args));
        throw new SystemError('Transient', 'no answer');
      },
    };
    const name = await provision.apply(gcp({ zones: ZONES }));
    expect(await provision.nudge(name, { providers: { gcp: silent } })).toMatchObject({ status: 503 });
    cloud.control.addFault({ kind: 'stockOut', zone: B, count: 1 });
    await provision.nudge(name);
    const kept = await cloud.machineOf(name);
    expect(kept.zone).toBe(C);
    await Promise.all(late.map((create) => create()));
    await expect.poll(() => cloud.machinesOf(name)).toHaveLength(2);
    await provision.nudge(name);
    await expect.poll(() => cloud.machinesOf(name)).toHaveLength(1);
    expect(await cloud.machineOf(name)).toMatchObject({ id: kept.id });
    expect((await provision.record(name))?.serving?.endpoint.host).toBe(kept.address);
  });

  test('row 42: whose answer was lost is not sent twice', async () => {
    cloud.control.addFault({ kind: 'lostResponse', method: 'instances.insert', count: 1 });
    const name = await provision.apply(GCP);
    await provision.nudge(name);
    await provision.nudge(name);
    expect(cloud.inserts((await cloud.machineOf(name)).name)).toBe(1);
    expect((await provisioned(name))?.status).toBe('True');
  });

  test('row 52: is waited for until its operation is done', async () => {
    cloud.control.addFault({ kind: 'slowOperation', method: 'instances.insert', ms: 3_000, count: 1 });
    const name = await cloud.applied();
    expect((await provisioned(name))?.status).toBe('True');
    expect(cloud.inserts((await cloud.machineOf(name)).name)).toBe(1);
  });
});

describe('a name that exists (row 41)', () => {
  test("of somebody else's machine is a Conflict; that machine is left alone, and once it is gone ours is made", async () => {
    const name = await cloud.ready();
    const taken = await nextName(name);
    await cloud.call('POST', `zones/${B}/instances`, foreign(taken));
    await cloud.control.vanish((await cloud.machineOf(name)).name);
    await provision.nudge(name);
    expect(await provisioned(name)).toMatchObject({ status: 'False', reason: 'Conflict' });
    expect((await provisioned(name))?.message).toContain(taken);
    expect(cloud.deletes(taken)).toBe(0);
    await cloud.control.vanish(taken);
    await provision.nudge(name);
    expect((await provision.get(name))?.status?.host).toBe((await cloud.machineOf(name)).address);
    expect((await provisioned(name))?.status).toBe('True');
  });

  test('of an own machine that nobody recorded is no conflict: it is read, adopted and published (W2)', async () => {
    const { name, own } = await withUnrecorded();
    await provision.nudge(name);
    expect(cloud.refused(own), 'its create call was answered 409').toBe(1);
    expect(await cloud.machineOf(name)).toMatchObject({ name: own });
    expect((await provision.record(name))?.serving?.machine).toBe(own);
    expect(cloud.deletes(own)).toBe(0);
  });

  test('of an own machine that is stopping: it is waited for, not deleted again, and another one is made', async () => {
    const { name, own } = await withUnrecorded();
    cloud.control.addFault({ kind: 'slowOperation', method: 'instances.delete', ms: 4_000, count: 1 });
    await cloud.call('DELETE', `zones/${B}/instances/${own}`);
    const working = provision.nudge(name);
    await expect
      .poll(async () => (await provisioned(name))?.message, { timeout: 20_000 })
      .toContain(`Machine ${own} is stopping`);
    expect((await provision.record(name))?.serving, 'nothing is published meanwhile').toBeUndefined();
    await working;
    expect(cloud.refused(own)).toBe(1);
    expect(cloud.deletes(own), 'only the one that was there before').toBe(1);
    const made = await cloud.machineOf(name);
    expect(made.name).not.toBe(own);
    expect((await provision.get(name))?.status?.host).toBe(made.address);
  });

  test("of a boot disk that outlived its machine: it is removed, since it is ours, and another's is left alone", async () => {
    const name = await cloud.ready();
    const { name: lost } = await cloud.machineOf(name);
    cloud.control.addFault({ kind: 'keptDisk', namePrefix: lost, count: 1 });
    await cloud.control.vanish(lost);
    const [foreignName, blocked] = [await nextName(name), 'somebody-elses'];
    cloud.control.addFault({ kind: 'keptDisk', count: 2 });
    for (const each of [foreignName, blocked]) {
      await cloud.call('POST', `zones/${B}/instances`, foreign(each));
      await cloud.control.vanish(each);
    }
    expect(await cloud.disks(B)).toEqual(expect.arrayContaining([lost, foreignName, blocked]));
    await provision.nudge(name);
    const made = await cloud.machineOf(name);
    expect(made.name).not.toBe(foreignName);
    const left = await cloud.disks(B);
    expect(left).not.toContain(lost);
    expect(left).toEqual(expect.arrayContaining([made.name, foreignName, blocked]));
    expect(cloud.control.countCalls({ method: 'disks.delete' })).toBe(1);
  });
});

describe('a machine that runs', () => {
  test('row 45: a Spot machine that was taken is withdrawn, replaced, and an Event says why', async () => {
    const name = await cloud.ready(gcp({ provisioningModel: 'Spot' }));
    const before = await cloud.machineOf(name);
    await cloud.control.preempt(before.name);
    await provision.nudge(name);
    const after = await cloud.machineOf(name);
    expect(after.name).not.toBe(before.name);
    expect((await provision.get(name))?.status?.host).toBe(after.address);
    const events = await eventsOf(provision, name);
    const told = events.find(({ reason }) => reason === 'MachineStopped');
    expect(told?.type).toBe('Warning');
    expect(told?.message).toMatch(new RegExp(`Spot machine ${before.name} .*preempted`, 'u'));
  });

  test('row 45: machines that are lost one after the other are made ever later', async () => {
    const name = await cloud.ready(gcp({ provisioningModel: 'Spot' }));
    await cloud.control.preempt((await cloud.machineOf(name)).name);
    await provision.nudge(name);
    await cloud.control.preempt((await cloud.machineOf(name)).name);
    await provision.nudge(name);
    expect((await provisioned(name))?.reason).toBe('MachineStopped');
    expect((await provisioned(name))?.message).toContain('the next machine is asked for at');
    const { wakeAt = 0 } = (await provision.record(name)) ?? {};
    expect(wakeAt).toBeGreaterThan(Date.now());
    expect(wakeAt).toBeLessThanOrEqual(Date.now() + 10_000);
  });

  test('row 51: and does not listen is published, asked for a probe, and not leasable', async () => {
    cloud.control.addFault({ kind: 'boot', delayMs: null, count: 1 });
    const name = await cloud.applied();
    expect((await cloud.machineOf(name)).listening).toBe(false);
    expect(condition(await provision.get(name), 'Ready')).toMatchObject({ reason: 'NotHealthy' });
    const [open] = await provision.documents(name);
    expect(open).toContain('"closedReason":"NotYetHealthy"');
    const before = provision.probes.length;
    await provision.nudge(name);
    expect(provision.probes).toHaveLength(before + 1);
    expect(await cloud.machinesOf(name), 'no replacement loop').toHaveLength(1);
  });

  test('without an external address is reached at its internal one', async () => {
    const name = await cloud.applied(gcp({ externalIP: 'None' }));
    expect((await provision.get(name))?.status?.host).toBe((await cloud.machineOf(name)).address);
    expect((await provision.record(name))?.serving?.ownExit).toBe(false);
  });

  test('W4: old messages after a replacement leave the new machine alone', async () => {
    const name = await cloud.ready();
    await provision.edit(name, { gcp: { machineType: 'e2-small' } });
    await provision.nudge(name);
    await provision.judge(name, 'Healthy');
    await provision.nudge(name);
    const machine = await cloud.machineOf(name);
    await Promise.all([1, 2, 3].map(() => provision.nudge(name)));
    expect(await cloud.machineOf(name)).toEqual(machine);
    expect(cloud.deletes(machine.name)).toBe(0);
  });
});

test('row 49: long and odd names make machines that do not collide', async () => {
  const names = ['a.b', 'a-b', `${'x'.repeat(200)}.${'y'.repeat(52)}`];
  for (const name of names) {
    await provision.apply(GCP, name);
    await provision.nudge(name);
  }
  const machines = await Promise.all(names.map((name) => cloud.machineOf(name)));
  expect(new Set(machines.map(({ name }) => name)).size).toBe(3);
  for (const { name } of machines) expect(name).toMatch(/^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/u);
});
