/** The cluster and the store of a world, with versions and conflicts. */

import { Timestamp } from '@google-cloud/firestore';

import type { Parts } from '../../../functions/provision/run.ts';
import { SystemError } from '#shared/app/errors.ts';
import { publications, type ProxyRecord } from '#shared/domain/record.ts';
import type { ProxyObject } from '#shared/kubernetes/cluster.ts';

import { edit, effect, storeRecord, type World } from './world.ts';

const current = (world: World, seen: ProxyObject): ProxyObject => {
  if (!world.proxy) throw new SystemError('NotFound', 'no such Proxy');
  if (world.proxy.metadata.resourceVersion !== seen.metadata.resourceVersion)
    throw new SystemError('Conflict', 'the Proxy has changed');
  return world.proxy;
};

export const fakeCluster = (world: World): Parts['cluster'] => ({
  getProxy: async () => world.proxy,
  clusterId: async () => world.clusterId,
  readSecret: async (_namespace, name) => world.secrets.get(name) ?? { kind: 'missing' },
  setFinalizers: (proxy, finalizers) =>
    effect(world, 'setFinalizers', () => {
      const stored = current(world, proxy);
      if (
        finalizers.length === 0 &&
        [...world.machines.values()].some((each) => each.installation === 'prod')
      )
        world.violations.push('the finalizer was removed while a machine was there');
      edit(world, ({ metadata, ...rest }) => ({ ...rest, metadata: { ...metadata, finalizers } }));
      const after = world.proxy ?? stored;
      if (finalizers.length === 0 && after.metadata.deletionTimestamp !== undefined) world.proxy = undefined;
      return after;
    }),
  patchStatus: (proxy, status) =>
    effect(world, 'patchStatus', () => {
      const stored = current(world, proxy);
      edit(world, (each) => ({ ...each, status }));
      return world.proxy ?? stored;
    }),
  recordEvent: async () => undefined,
});

/** The time of the write, in which the number of the version tells those of one millisecond apart. */
const versionOf = ({ version, at }: NonNullable<World['record']>) => ({
  updateTime: new Timestamp(Math.floor(at / 1000), (at % 1000) * 1_000_000 + version),
});

const checkPublished = (world: World, record: ProxyRecord): void => {
  const before = new Set(
    world.record ? publications(world.record.value).map(({ endpoint }) => endpoint.id) : [],
  );
  for (const { endpoint, machine } of publications(record)) {
    if (machine === undefined || before.has(endpoint.id)) continue;
    const real = [...world.machines.values()].find(({ instanceId }) => instanceId === endpoint.instanceId);
    if (real?.address !== endpoint.host) world.violations.push(`published ${endpoint.host} of ${machine}`);
  }
};

export const fakeRecords = (world: World): Parts['records'] => ({
  at: async () => ({ records: [], unreadable: [], readTime: world.now }),
  read: async () =>
    world.record && {
      record: structuredClone(world.record.value),
      version: versionOf(world.record),
      readTime: world.now,
    },
  create: (record) =>
    effect(world, 'createRecord', () => {
      if (world.record) throw new SystemError('Conflict', 'the record exists');
      checkPublished(world, record);
      world.gate = true;
      return versionOf(storeRecord(world, record));
    }),
  hasLeases: async () => world.gate,
  removeLeases: () =>
    effect(world, 'removeLeases', () => {
      if (world.record) world.violations.push('the gate of a record was removed');
      world.gate = false;
    }),
  write: (record, version) =>
    effect(world, 'writeRecord', () => {
      if (!world.record || !versionOf(world.record).updateTime.isEqual(version.updateTime))
        throw new SystemError('Conflict', 'the record has changed');
      checkPublished(world, record);
      return versionOf(storeRecord(world, record));
    }),
});
