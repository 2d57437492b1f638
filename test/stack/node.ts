/** What runs Pods on this machine: the stand-in for the kubelet, with addresses of its own. */

import type { Log } from '#shared/app/log.ts';
import { makeAddressAllocator } from '#test/compute/addresses.ts';
import { startKubelet, type Kubelet } from '#test/kubelet/kubelet.ts';
import type { ControlPlane } from '#test/services/control-plane.ts';
import { claimLoopbackRange } from '#test/services/ports.ts';

/** A container listens half a second after its Pod was made. */
const START_MS = 500;

export const startNode = async (
  { server, caFile, tokens, adminKubeconfig }: ControlPlane,
  log: Log,
): Promise<Kubelet> => {
  const range = await claimLoopbackRange();
  const kubelet = await startKubelet({
    api: { server, caFile, token: tokens['admin'] ?? '' },
    kubeconfig: adminKubeconfig,
    addresses: makeAddressAllocator(range),
    delayMs: START_MS,
    log,
  });
  return {
    ...kubelet,
    async stop() {
      await kubelet.stop();
      await range.release();
    },
  };
};
