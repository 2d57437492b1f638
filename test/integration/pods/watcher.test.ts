import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest';

import type { MachineProvider } from '#shared/domain/machine.ts';
import { machineSpec } from '#test/compute/builders.ts';
import { startKubelet, type Kubelet } from '#test/kubelet/kubelet.ts';
import { makeAddressAllocator } from '#test/compute/addresses.ts';
import { claimLoopbackRange, type LoopbackRange } from '#test/services/ports.ts';
import { makeLog } from '#shared/app/log.ts';
import { systemClock as clock } from '#shared/app/clock.ts';
import { openPodProvider } from '#shared/kubernetes/pods/provider.ts';

import { KUBERNETES, api, mergePatch } from '../proxies.ts';
import { INSTALLATION, openStage, type Stage } from '../watcher/stage.ts';
import { grantPods, openLink } from './fixture.ts';

let stage: Stage;
let range: LoopbackRange;
let kubelet: Kubelet;
let provider: MachineProvider;

beforeAll(async () => {
  stage = await openStage();
  await grantPods(stage.namespace);
  range = await claimLoopbackRange();
  const log = makeLog(() => undefined);
  const { namespace } = stage;
  kubelet = await startKubelet({
    api: api(),
    kubeconfig: inject('cluster').kubeconfigs.admin,
    addresses: makeAddressAllocator(range),
    namespace,
    log,
  });
  provider = openPodProvider(
    { installation: INSTALLATION, namespaces: [namespace], clock, log },
    openLink('provision'),
  );
});
afterAll(async () => {
  await kubelet.stop();
  await provider.close();
  await stage.close();
  await range.release();
});

/** A Proxy that was dealt with, and its Pod, running. */
const withPod = async () => {
  const { metadata } = await stage.create({ ...KUBERNETES, endpoint: undefined });
  await stage.forwarded(metadata.name, 'New');
  await stage.dealWith(metadata.name);
  const ref = { namespace: stage.namespace, name: metadata.name, uid: metadata.uid };
  const spec = machineSpec(INSTALLATION, { ref, kubernetes: KUBERNETES.kubernetes });
  await provider.create(spec, stage.namespace, '1');
  await vi.waitUntil(async () => (await provider.get(spec.name, stage.namespace))?.state === 'running', {
    timeout: 10_000,
  });
  return { proxy: metadata.name, pod: spec.name };
};

test('W3, rows 61 to 63: what happens to a Pod is forwarded once, and what changes nothing is not', async () => {
  await stage.withWatcher(
    async () => {
      const { proxy, pod } = await withPod();
      await stage.forwarded(proxy, 'New', 'MachineChanged');
      const path = `/api/v1/namespaces/${stage.namespace}/pods/${pod}`;
      await mergePatch(path, { metadata: { annotations: { seen: 'by nobody' } } });
      await stage.caughtUp();
      expect(stage.reasons(proxy)).toHaveLength(2);
      await kubelet.control.setReady(pod, false);
      await stage.forwarded(proxy, 'New', ...Array<string>(2).fill('MachineChanged'));
      await kubelet.control.setReady(pod, true);
      await stage.forwarded(proxy, 'New', ...Array<string>(3).fill('MachineChanged'));
      await kubelet.control.fail(pod);
      await stage.forwarded(proxy, 'New', ...Array<string>(4).fill('MachineChanged'));
    },
    { pods: true },
  );
});

test('after a restart only Pods that do not serve are news', async () => {
  let served = '';
  let lost = '';
  await stage.withWatcher(
    async () => {
      const good = await withPod();
      const bad = await withPod();
      await stage.forwarded(good.proxy, 'New', 'MachineChanged');
      await stage.forwarded(bad.proxy, 'New', 'MachineChanged');
      [served, lost] = [good.proxy, bad.proxy];
    },
    { pods: true },
  );
  const pod = kubelet.control.pods().at(-1)?.name ?? '';
  await kubelet.control.setReady(pod, false);
  await stage.withWatcher(
    async () => {
      await stage.forwarded(lost, 'New', 'MachineChanged', 'MachineChanged');
      expect(stage.reasons(served)).toEqual(['New', 'MachineChanged']);
    },
    { pods: true },
  );
});
