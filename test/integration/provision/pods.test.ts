/** Whole calls of provision with Pods as machines. */

import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';

import { callApi } from '#test/services/api.ts';

import { KUBERNETES, api } from '../proxies.ts';
import { condition } from './fixture.ts';
import { startPodWorld, type PodName, type PodWorld } from './pod-world.ts';

const WITHIN = { timeout: 60_000 };
const SLOWLY = { timeout: 180_000 };

let world: PodWorld;

beforeAll(async () => {
  world = await startPodWorld();
});
afterAll(() => world.stop());

const ready = async (spec: object = {}): Promise<string> => {
  const name = await world.provision.apply({ ...KUBERNETES, ...spec });
  await world.nudge(name);
  await world.provision.judge(name, 'Healthy');
  await world.nudge(name);
  expect(condition(await world.provision.get(name), 'Ready')?.status).toBe('True');
  return name;
};

/** No Pod gets a node meanwhile, so that what follows a withdrawal can be told from it. */
const withoutNodes = async <T>(work: () => Promise<T>): Promise<T> => {
  const fault = world.pods.kubelet.control.addFault({ kind: 'unschedulable' });
  try {
    return await work();
  } finally {
    world.pods.kubelet.control.removeFault(fault);
  }
};

const gateOf = async (name: string): Promise<string> => (await world.provision.documents(name))[0];

/** What everybody can see of a Proxy while nothing serves. */
const expectWithdrawn = async (name: string, endpointId: string, why: RegExp): Promise<void> => {
  expect((await world.provision.record(name))?.serving).toBeUndefined();
  expect(await gateOf(name)).toContain('"closedReason":"NoEndpoint"');
  expect(await gateOf(name)).not.toContain(endpointId);
  const proxy = await world.provision.get(name);
  expect(proxy?.status).not.toHaveProperty('host');
  expect(condition(proxy, 'Provisioned')).toMatchObject({ status: 'False', reason: 'MachineStopped' });
  expect(condition(proxy, 'Provisioned')?.message).toMatch(why);
};

/** Another Pod serves, under another name and as another endpoint, and nothing is left of the first. */
const expectReplaced = async (name: string, before: PodName): Promise<void> => {
  await world.nudge(name);
  const after = await world.podOf(name);
  expect(after.name).not.toBe(before.name);
  const { serving, machines = [] } = (await world.provision.record(name)) ?? {};
  expect(serving?.endpoint.instanceId).toBe(after.uid);
  expect(machines.map((each) => each.name)).toEqual([after.name]);
};

describe('a Proxy whose Pod', () => {
  test.concurrent.for([
    ['row 61: failed and keeps its address, which another Pod may get', true],
    ['row 62: was evicted, its address gone in the same update', false],
  ] as const)(
    '%s, is withdrawn at once, gets another one, and goes without a trace',
    SLOWLY,
    async ([, keepAddress]) => {
      const name = await ready();
      const { endpoint } = (await world.provision.record(name))?.serving ?? {};
      const pod = await world.podOf(name);
      await withoutNodes(async () => {
        await world.pods.kubelet.control.fail(pod.name, { keepAddress });
        await world.nudge(name, 1_000);
        await expectWithdrawn(name, endpoint?.id ?? '', new RegExp(`${pod.name} .*Evicted`, 'u'));
      });
      await expectReplaced(name, pod);
      const gone = await world.provider.get(pod.name, world.provision.namespace);
      expect(gone).toBeUndefined();
      await world.removed(name);
    },
  );

  test.concurrent(
    'row 63, W3: terminates for ever on a lost node, is withdrawn at once and not waited for',
    async () => {
      const name = await ready();
      const { endpoint } = (await world.provision.record(name))?.serving ?? {};
      const pod = await world.podOf(name);
      const stuck = world.pods.kubelet.control.addFault({ kind: 'stuckTerminating', name: pod.name });
      await callApi(api(), `/api/v1/namespaces/${world.provision.namespace}/pods/${pod.name}`, {
        method: 'DELETE',
      });
      await withoutNodes(async () => {
        await world.nudge(name, 1_000);
        await expectWithdrawn(name, endpoint?.id ?? '', new RegExp(`${pod.name} is being deleted`, 'u'));
      });
      await world.nudge(name, 8_000);
      const names = (await world.podsOf(name)).map((each) => each.name);
      expect(names).toHaveLength(2);
      expect(names).toContain(pod.name);
      const { serving } = (await world.provision.record(name)) ?? {};
      expect(serving?.machine).not.toBe(pod.name);
      expect(serving?.endpoint.instanceId).not.toBe(pod.uid);
      world.pods.kubelet.control.removeFault(stuck);
      await vi.waitUntil(async () => (await world.podsOf(name)).length === 1, WITHIN);
      await expectReplaced(name, pod);
      await world.removed(name);
    },
    180_000,
  );

  test.concurrent(
    'W3: is not ready is withdrawn at once, and published as a new endpoint when it is ready again',
    async () => {
      const name = await ready();
      const { endpoint } = (await world.provision.record(name))?.serving ?? {};
      const pod = await world.podOf(name);
      await world.pods.kubelet.control.setReady(pod.name, false);
      await world.nudge(name, 1_000);
      expect((await world.provision.record(name))?.serving).toBeUndefined();
      expect(await gateOf(name)).not.toContain(endpoint?.id);
      await world.pods.kubelet.control.setReady(pod.name, true);
      await world.nudge(name);
      const { serving } = (await world.provision.record(name)) ?? {};
      expect(serving?.endpoint).toMatchObject({ host: endpoint?.host, instanceId: pod.uid });
      expect(serving?.endpoint.id).not.toBe(endpoint?.id);
      expect(serving?.verdict.state).toBe('Unknown');
      expect((await world.podOf(name)).uid).toBe(pod.uid);
    },
    180_000,
  );
});
