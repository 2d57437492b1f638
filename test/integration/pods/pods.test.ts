import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import type { Machine, MachineProvider, MachineSpec } from '#shared/domain/machine.ts';
import { machineSpec } from '#test/compute/builders.ts';
import { eventually } from '#test/compute/through-proxy.ts';

import { KUBERNETES, call, proxyPath, randomNamespace } from '../proxies.ts';
import { openLink, startPods, type Link, type PodFixture } from './fixture.ts';

let pods: PodFixture;
let provider: MachineProvider;
let link: Link;

beforeAll(async () => {
  pods = await startPods();
  link = openLink('provision');
  provider = pods.provider('prod', link);
});
afterAll(() => pods.stop());

const specOf = async (changes: Partial<MachineSpec> = {}): Promise<MachineSpec> =>
  machineSpec('prod', { ref: await pods.owner(), kubernetes: KUBERNETES.kubernetes, ...changes });

const inState = (name: string, state: Machine['state']): Promise<Machine> =>
  eventually(async () => {
    const machine = await provider.get(name, pods.namespace);
    return machine?.state === state ? machine : undefined;
  });

const made = async (changes: Partial<MachineSpec> = {}): Promise<MachineSpec> => {
  const spec = await specOf(changes);
  await provider.create(spec, pods.namespace, spec.ref.uid);
  return spec;
};

const secretStatus = async (name: string): Promise<number> =>
  (await call(`/api/v1/namespaces/${pods.namespace}/secrets/${name}`)).status;

const USER_DATA = {
  userData: '#!/bin/sh\ntrue\n',
  credentials: { username: 'crawler', password: 'pa55word' },
};

describe('a Pod on the real API server', () => {
  test('N1: goes with its Proxy although nobody deleted it, and its Secret goes with it', async () => {
    const spec = await made(USER_DATA);
    await inState(spec.name, 'running');
    const files = pods.kubelet.control.pods().find(({ name }) => name === spec.name)?.files;
    expect(files).toEqual(['proxy-password', 'proxy-port', 'proxy-username', 'user-data']);
    expect(await secretStatus(spec.name)).toBe(200);
    await call(proxyPath(pods.namespace, spec.ref.name), { method: 'DELETE' });
    // The garbage collector looks for new kinds, such as Proxy, twice a minute.
    await eventually(
      async () => ((await provider.get(spec.name, pods.namespace)) ? undefined : true),
      60_000,
    );
    await eventually(async () => ((await secretStatus(spec.name)) === 404 ? true : undefined));
  }, 90_000);

  test('rows 61 and 62: a failed or evicted one has no address, whether its status keeps one or not', async () => {
    for (const keepAddress of [true, false]) {
      const spec = await made();
      await inState(spec.name, 'running');
      await pods.kubelet.control.fail(spec.name, { keepAddress });
      const machine = await inState(spec.name, 'failed');
      expect(machine).not.toHaveProperty('address');
      expect(machine.detail).toContain('Evicted');
    }
  });

  test('row 63, W3: one that is ready and terminates for ever is stopping', async () => {
    const spec = await made();
    const machine = await inState(spec.name, 'running');
    const fault = pods.kubelet.control.addFault({ kind: 'stuckTerminating', name: spec.name });
    await provider.delete(machine);
    expect(await inState(spec.name, 'stopping')).not.toHaveProperty('address');
    pods.kubelet.control.removeFault(fault);
  });

  test('whose image cannot be had is being created, and says why', async () => {
    const spec = await specOf();
    const fault = pods.kubelet.control.addFault({ kind: 'imagePull', name: spec.name });
    await provider.create(spec, pods.namespace, spec.ref.uid);
    const machine = await eventually(async () => {
      const seen = await provider.get(spec.name, pods.namespace);
      return seen?.detail === undefined ? undefined : seen;
    });
    expect(machine.state).toBe('creating');
    expect(machine.detail).toContain('ImagePullBackOff');
    pods.kubelet.control.removeFault(fault);
    await inState(spec.name, 'running');
  });

  test('leaves nothing behind where its Secret is refused', async () => {
    const spec = await specOf(USER_DATA);
    link.answerNext('POST', /\/secrets$/u, 503);
    await expect(provider.create(spec, pods.namespace, spec.ref.uid)).rejects.toMatchObject({
      code: 'Transient',
    });
    await eventually(async () => ((await provider.get(spec.name, pods.namespace)) ? undefined : true));
  });

  test('a namespace that cannot be listed is unknown, and hides no other', async () => {
    const spec = await made();
    link.answerNext('GET', /\/pods$/u, 500);
    expect(await provider.list()).toEqual({ machines: [], unknownZones: [pods.namespace], partial: false });
    const { machines } = await provider.list();
    expect(machines.map(({ name }) => name)).toContain(spec.name);
  });
});

test('W8: without the optional component provision may not make a Pod', async () => {
  const namespace = await randomNamespace();
  const spec = await specOf();
  const elsewhere = { ...spec, ref: { ...spec.ref, namespace } };
  await expect(provider.create(elsewhere, namespace, '1')).rejects.toMatchObject({ code: 'Unauthorised' });
  await expect(provider.get(spec.name, namespace)).rejects.toMatchObject({ code: 'Unauthorised' });
});
