/** Everything that provision needs, in a world. */

import type { Parts } from '../../../functions/provision/run.ts';
import { makeLog } from '#shared/app/log.ts';

import { fakeProvider } from './fake-cloud.ts';
import { fakeCluster, fakeRecords } from './fake-store.ts';
import { effect, nextNumber, storeRecord, type World } from './world.ts';

export const partsOf = (world: World): Parts => ({
  cluster: fakeCluster(world),
  records: fakeRecords(world),
  leaseCounts: async () =>
    Object.fromEntries(
      [...world.leases]
        .filter(([, expiry]) => expiry > world.now)
        .map(([id, lastExpiry]) => [id, { count: 1, lastExpiry }]),
    ),
  queue: async () => world.queue,
  rememberedCluster: async () => 'cluster-1',
  maxReplacingPercent: 25,
  credentials: {
    create: (id, value) =>
      effect(world, 'storeCredentials', () => {
        world.credentials.set(id, value);
      }),
    idsOf: async () => [...world.credentials.keys()],
    remove: (id) =>
      effect(world, 'removeCredentials', () => {
        world.credentials.delete(id);
      }),
  },
  publisher: {
    probe: () =>
      effect(world, 'probe', () => {
        world.probes.push(world.now);
      }),
  },
  providers: { gcp: fakeProvider(world) },
  installation: 'prod',
  allowPrivateEndpoints: true,
  clock: { now: () => world.now, monotonic: () => world.now },
  ids: {
    token: () => `t${nextNumber(world)}`,
    uuid: () => `u${nextNumber(world)}`,
    fraction: () => 0.5,
  },
  log: makeLog(() => undefined),
});

/** What health does: every published endpoint gets this verdict. */
export const judge = (world: World, state: 'Healthy' | 'Unhealthy'): void => {
  if (!world.record) return;
  const verdict = { state, since: world.now, checkedAt: world.now };
  const { serving, candidate, draining, ...rest } = world.record.value;
  storeRecord(world, {
    ...rest,
    ...(serving ? { serving: { ...serving, verdict } } : {}),
    ...(candidate ? { candidate: { ...candidate, verdict } } : {}),
    draining,
  });
};
