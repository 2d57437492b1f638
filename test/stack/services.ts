/** What installations share: a control plane, the emulators, and the cloud around them. */

import type { Log } from '#shared/app/log.ts';
import { startControlPlane, type ControlPlane } from '#test/services/control-plane.ts';
import { startFirestoreEmulator, startPubsubEmulator } from '#test/services/emulators.ts';
import { claimLoopbackRange, type LoopbackRange } from '#test/services/ports.ts';
import { startTogether } from '#test/services/together.ts';

import { startCloud, type Cloud } from './cloud.ts';
import { CLUSTER_USERS } from './identities.ts';
import type { Progress } from './progress.ts';

export const PROJECT = 'local-egress';

export interface Services {
  readonly controlPlane: ControlPlane;
  readonly firestore: string;
  readonly pubsub: string;
  readonly cloud: Cloud;
}

export interface ServicesOptions {
  readonly runDir: string;
  readonly ranges: readonly LoopbackRange[];
  readonly progress: Progress;
  readonly log: Log;
}

/** Adopts what has a `stop`, to be stopped last in, first out. */
export const owned = <T extends { stop(): Promise<void> }>(owner: AsyncDisposableStack, thing: T): T => {
  owner.defer(() => thing.stop());
  return thing;
};

/** Starts all of them at the same time; they end with their owner. */
export const startServices = async (
  owner: AsyncDisposableStack,
  { runDir, ranges, progress, log }: ServicesOptions,
): Promise<Services> => {
  const [controlPlane, firestore, pubsub, cloud] = await startTogether([
    progress.step('Kubernetes control plane', () =>
      startControlPlane({
        runDir,
        users: CLUSTER_USERS.map((name) => ({ name })),
        log: (line) => progress.note(line),
      }),
    ),
    progress.step('Firestore emulator', () => startFirestoreEmulator({ runDir })),
    progress.step('Pub/Sub emulator', () => startPubsubEmulator({ runDir })),
    progress.step('Compute Engine stand-in', () => startCloud(PROJECT, runDir, ranges, log)),
  ]);
  for (const service of [cloud, pubsub, firestore, controlPlane]) owned(owner, service);
  // The product's clients, and ours, find the emulators by these.
  process.env['PUBSUB_EMULATOR_HOST'] = pubsub.host;
  process.env['FIRESTORE_EMULATOR_HOST'] = firestore.host;
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  return { controlPlane, cloud, firestore: firestore.host, pubsub: pubsub.host };
};

/** Loopback addresses of a stack's own. */
export const claimRanges = async (
  owner: AsyncDisposableStack,
  count: number,
): Promise<readonly LoopbackRange[]> => {
  const ranges: LoopbackRange[] = [];
  while (ranges.length < count) {
    const range = await claimLoopbackRange();
    owner.defer(() => range.release());
    ranges.push(range);
  }
  return ranges;
};
