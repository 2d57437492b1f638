import { randomUUID } from 'node:crypto';
import { inspect } from 'node:util';

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';

import type { Machine, MachineProvider, MachineSpec, OperationResult } from '#shared/domain/machine.ts';
import { GCP_SPEC, machineSpec } from '#test/compute/builders.ts';
import type { ComputeControl } from '#test/compute/control.ts';
import type { Fault } from '#test/compute/faults.ts';
import {
  eventually,
  getThrough,
  startTarget,
  tunnelThrough,
  type Target,
} from '#test/compute/through-proxy.ts';

import { startCompute, type ComputeFixture } from './compute-fixture.ts';

const ZONE = 'europe-west1-b';
const soon = (): AbortSignal => AbortSignal.timeout(15_000);

const spec = (changes: Partial<MachineSpec> = {}): MachineSpec => machineSpec('prod', changes);
const proxyOf = (machine: Machine): { host: string; port: number } => ({
  host: machine.address ?? 'none',
  port: 3128,
});

describe('Compute Engine', () => {
  let compute: ComputeFixture;
  let control: ComputeControl;
  let provider: MachineProvider;
  let target: Target;

  const create = async (wanted: MachineSpec, zone = ZONE): Promise<OperationResult> =>
    provider.wait(await provider.create(wanted, zone, randomUUID()), soon());
  const made = async (changes: Partial<MachineSpec> = {}, zone = ZONE): Promise<Machine> => {
    const wanted = spec(changes);
    expect(await create(wanted, zone)).toEqual({ kind: 'succeeded' });
    const machine = await provider.get(wanted.name, zone);
    if (!machine) throw new Error(`${wanted.name} was made and is not there`);
    return machine;
  };

  beforeAll(async () => {
    compute = await startCompute();
    ({ control } = compute.standIn);
    provider = compute.provider('prod');
    target = await startTarget();
  });
  afterEach(() => control.clearFaults());
  afterAll(async () => {
    await target.close();
    await compute.stop();
  });

  test.each([
    ['stock-out', { kind: 'stockOut', count: 1 }, 'CapacityUnavailable', 'ZONE_RESOURCE_POOL_EXHAUSTED'],
    [
      'stock-out with details',
      { kind: 'stockOut', details: true, count: 1 },
      'CapacityUnavailable',
      'ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS',
    ],
    ['quota', { kind: 'quota', count: 1 }, 'QuotaExceeded', 'QUOTA_EXCEEDED'],
    [
      'a refusal of its own kind',
      { kind: 'operationError', code: 'UNSUPPORTED_OPERATION', message: 'No such disk here.', count: 1 },
      'InvalidSpec',
      'UNSUPPORTED_OPERATION',
    ],
  ] as const)(
    'row 38: an accepted create call that ends in %s fails as that, and leaves no machine',
    async (_, fault, behaviour, code) => {
      control.addFault(fault);
      const wanted = spec();
      const result = await create(wanted);
      expect(result).toMatchObject({ kind: 'failed', behaviour, code });
      expect(result).toHaveProperty('message', expect.stringMatching(/\w+/u));
      expect(await provider.get(wanted.name, ZONE)).toBeUndefined();
    },
  );

  test('row 42: the same request id gives the failed operation again, a new one a new attempt', async () => {
    control.addFault({ kind: 'stockOut', count: 1 });
    const wanted = spec();
    const requestId = randomUUID();
    const first = await provider.create(wanted, ZONE, requestId);
    expect(await provider.wait(first, soon())).toMatchObject({ kind: 'failed' });
    expect(await provider.create(wanted, ZONE, requestId)).toEqual(first);
    expect(await create(wanted)).toEqual({ kind: 'succeeded' });
  });

  test.each([
    ['an unknown machine type', { gcp: { ...GCP_SPEC, machineType: 'z9-huge' } }, /machineType/u],
    [
      'an image that does not exist',
      { gcp: { ...GCP_SPEC, image: 'projects/x-cloud/global/images/y' } },
      /images\/y/u,
    ],
    ['a bad name', { name: 'Bad_Name' }, /resource\.name/u],
    ['a bad label', { hash: 'UPPER', name: 'prod-x' }, /label/iu],
    ['too much user data', { userData: 'x'.repeat(300 * 1024) }, /user-data/u],
    [
      'a subnetwork of another region',
      { gcp: { ...GCP_SPEC, subnetwork: 'projects/p/regions/us-central1/subnetworks/s' } },
      /subnetwork/u,
    ],
  ])('%s is the Proxy that is wrong', async (_, changes, message) => {
    const refusal = provider.create(spec(changes), ZONE, randomUUID());
    await expect(refusal).rejects.toMatchObject({ code: 'InvalidSpec' });
    await expect(refusal).rejects.toThrow(message);
  });

  test('row 50: too much user data is refused without a call', async () => {
    control.resetCalls();
    await expect(
      provider.create(spec({ userData: 'x'.repeat(300_000) }), ZONE, randomUUID()),
    ).rejects.toThrow(/takes at most/u);
    expect(control.countCalls()).toBe(0);
  });

  test('a zone or project that does not exist is said so, and no machine is absent because of it', async () => {
    await expect(provider.get('prod-x', 'mars-north1-a')).rejects.toMatchObject({ code: 'InvalidSpec' });
  });

  test.each([
    [{ statuses: [403] }, 'Transient', 'rateLimitExceeded'],
    [{ statuses: [403], reason: 'forbidden', message: 'No right.' }, 'Unauthorised', 'forbidden'],
    [{ statuses: [401] }, 'Unauthorised', 'authError'],
    [{ statuses: [429] }, 'Transient', 'rateLimitExceeded'],
    [{ statuses: [500] }, 'Transient', 'internalError'],
    [{ statuses: [503] }, 'Transient', 'backendError'],
  ])('row 43: an answer like %j is no absence but %s', async (fault, code, reason) => {
    const machine = await made();
    control.addFault({ kind: 'status', method: 'instances.get', ...fault });
    await expect(provider.get(machine.name, ZONE)).rejects.toMatchObject({
      code,
      provider: { code: reason },
    });
    control.resetCalls();
    expect(await provider.get(machine.name, ZONE)).toEqual(machine);
    expect(control.countCalls({ method: 'instances.get' })).toBe(1);
  });

  test('design 14: an error of a create call says nothing of user data and password, however it is printed', async () => {
    const secret = { userData: 'private-key', credentials: { username: 'u', password: 'pa55word' } };
    const method = 'instances.insert';
    const faults: readonly Fault[] = [
      { kind: 'lostResponse', method, count: 1 },
      { kind: 'status', statuses: [403], method },
    ];
    for (const fault of faults) {
      control.addFault(fault);
      const error: unknown = await provider.create(spec(secret), ZONE, randomUUID()).catch((e: unknown) => e);
      const printed = inspect(error, { depth: null, showHidden: true });
      expect(printed).toContain('SystemError');
      expect(printed).not.toMatch(/private-key|pa55word/u);
    }
  });

  test('a call is not repeated behind our back, and a slow answer is waited for', async () => {
    control.resetCalls();
    control.addFault({ kind: 'status', method: 'instances.get', statuses: [503, 503] });
    await expect(provider.get('prod-x', ZONE)).rejects.toMatchObject({ code: 'Transient' });
    expect(control.countCalls({ method: 'instances.get' })).toBe(1);
    control.clearFaults();
    control.addFault({ kind: 'slowResponse', method: 'instances.get', ms: 300 });
    expect(await provider.get('prod-x', ZONE)).toBeUndefined();
  });

  test('row 43: a delete that is refused has not happened', async () => {
    const machine = await made();
    control.addFault({ kind: 'status', method: 'instances.delete', statuses: [403] });
    await expect(provider.delete(machine)).rejects.toMatchObject({ code: 'Transient' });
    expect(await provider.get(machine.name, ZONE)).toEqual(machine);
  });

  test('W1: a slow deletion is one delete call, shown as stopping', async () => {
    const machine = await made();
    control.addFault({ kind: 'slowOperation', method: 'instances.delete', ms: 2_000, count: 1 });
    const operation = await provider.delete(machine);
    expect(await provider.get(machine.name, ZONE)).toMatchObject({ state: 'stopping' });
    if (!operation) throw new Error('nothing was deleted');
    expect(await provider.wait(operation, soon())).toEqual({ kind: 'succeeded' });
    expect(await provider.get(machine.name, ZONE)).toBeUndefined();
    expect(control.countCalls({ method: 'instances.delete', name: machine.name })).toBe(1);
  });

  test('rows 45, 46: a machine that stopped has no address, and another one when it runs again', async () => {
    const machine = await made();
    await eventually(() => getThrough(proxyOf(machine), target));
    await control.preempt(machine.name);
    const stopped = await provider.get(machine.name, ZONE);
    expect(stopped).toMatchObject({ state: 'stopped', detail: 'Instance was preempted.' });
    expect(stopped).not.toHaveProperty('address');
    await expect(getThrough(proxyOf(machine), target)).rejects.toThrow(/ECONNREFUSED/u);
    expect(await provider.wait(await provider.start(machine), soon())).toEqual({ kind: 'succeeded' });
    const again = await provider.get(machine.name, ZONE);
    expect(again).toMatchObject({ state: 'running', instanceId: machine.instanceId });
    expect(again?.address).toMatch(/^127\./u);
    expect(again?.address).not.toBe(machine.address);
    expect(await eventually(() => getThrough(proxyOf(again ?? machine), target))).toEqual({
      status: 200,
      body: again?.address,
    });
  });

  test('a machine without an external address is reached on its internal one', async () => {
    const machine = await made({ gcp: { ...GCP_SPEC, externalIP: 'None' } });
    expect(await eventually(() => tunnelThrough(proxyOf(machine), target))).toEqual({
      status: 200,
      body: machine.address,
    });
  });

  test('row 51: RUNNING is not listening', async () => {
    control.addFault({ kind: 'boot', delayMs: 2_500, count: 1 });
    const machine = await made();
    expect(machine.state).toBe('running');
    await expect(getThrough(proxyOf(machine), target)).rejects.toThrow(/ECONNREFUSED/u);
    expect(await eventually(() => getThrough(proxyOf(machine), target))).toMatchObject({ status: 200 });
  });

  test('rows 47, 48: a list has all of its pages, and zones that are out of reach are unknown', async () => {
    const paged = await startCompute({ longestPage: 4 });
    const lister = paged.provider('many');
    const zones = ['europe-west1-b', 'europe-west1-c', 'us-central1-a'];
    const made9 = Array.from({ length: 9 }, async (_, index) => {
      const operation = await lister.create(machineSpec('many'), zones[index % 3] ?? ZONE, randomUUID());
      return lister.wait(operation, soon());
    });
    await Promise.all(made9);
    const all = await lister.list();
    expect(paged.standIn.control.countCalls({ method: 'instances.aggregatedList' })).toBe(3);
    expect(all).toMatchObject({ unknownZones: [], partial: false });
    expect(new Set(all.machines.map(({ name }) => name)).size).toBe(9);

    for (const how of ['warning', 'unreachables', 'both'] as const) {
      paged.standIn.control.clearFaults();
      paged.standIn.control.addFault({ kind: 'unreachableZone', zone: 'us-central1-a', how });
      const some = await lister.list();
      expect(some.unknownZones).toEqual(['us-central1-a']);
      expect(some.machines).toHaveLength(6);
    }
    paged.standIn.control.clearFaults();
    paged.standIn.control.addFault({
      kind: 'status',
      statuses: [200, 503],
      method: 'instances.aggregatedList',
    });
    await expect(lister.list()).rejects.toMatchObject({ code: 'Transient' });
    await paged.stop();
  });

  test('50 who wait in a zone cost at most one list a second, and none afterwards', async () => {
    const machines = await Promise.all(
      Array.from({ length: 50 }, () => made({ gcp: { ...GCP_SPEC, externalIP: 'None' } }, 'europe-west1-d')),
    );
    expect(new Set(machines.map(({ name }) => name)).size).toBe(50);
    control.addFault({ kind: 'slowOperation', method: 'instances.delete', ms: 2_500 });
    control.resetCalls();
    const operations = await Promise.all(machines.map((machine) => provider.delete(machine)));
    const results = await Promise.all(
      operations.map(async (operation) => operation && provider.wait(operation, soon())),
    );
    expect(new Set(results.map((result) => result?.kind))).toEqual(new Set(['succeeded']));
    const lists = control.calls({ method: 'operations.list', zone: 'europe-west1-d' });
    expect(lists.length).toBeGreaterThan(1);
    const gaps = lists.slice(1).map(({ at }, index) => at - (lists[index]?.at ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(900);
    expect(control.countCalls({ method: 'operations.get' })).toBe(0);
  });
});
