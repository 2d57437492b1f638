/** Resources as JSON, in the shapes of the API: ids as strings, links as full URLs. */

import { fingerprintOf, pathOf, type Disk, type Instance, type Operation, type World } from './world.ts';

export type Resource = Readonly<Record<string, unknown>>;

const BASE = 'https://www.googleapis.com/compute/v1/';

/** A path as a full URL; what is one already stays. */
export const link = (path: string): string => (path.startsWith('https://') ? path : `${BASE}${path}`);

export const zoneLink = (world: World, zone: string): string =>
  link(`projects/${world.projectId}/zones/${zone}`);

const time = (milliseconds: number): string => new Date(milliseconds).toISOString().replace('Z', '+00:00');

const interfaceResource = (world: World, instance: Instance): Resource => {
  const [asked] = instance.body.networkInterfaces;
  const region = instance.zone.slice(0, instance.zone.lastIndexOf('-'));
  const nat = instance.natIP === undefined ? {} : { natIP: instance.natIP };
  const accessConfigs = (asked?.accessConfigs ?? []).map((config) =>
    Object.assign(
      { kind: 'compute#accessConfig', type: 'ONE_TO_ONE_NAT', name: 'External NAT' },
      config,
      nat,
    ),
  );
  return {
    kind: 'compute#networkInterface',
    name: 'nic0',
    network: link(asked?.network ?? `projects/${world.projectId}/global/networks/default`),
    subnetwork: link(
      asked?.subnetwork ?? `projects/${world.projectId}/regions/${region}/subnetworks/default`,
    ),
    stackType: 'IPV4_ONLY',
    ...(instance.networkIP === undefined ? {} : { networkIP: instance.networkIP }),
    ...(accessConfigs.length > 0 ? { accessConfigs } : {}),
  };
};

export const instanceResource = (world: World, instance: Instance): Resource => ({
  kind: 'compute#instance',
  id: instance.id,
  creationTimestamp: time(instance.createdAt),
  name: instance.name,
  ...(instance.body.description === undefined ? {} : { description: instance.body.description }),
  zone: zoneLink(world, instance.zone),
  machineType: link(instance.body.machineType.replace(/^zones\//u, `projects/${world.projectId}/zones/`)),
  status: instance.status,
  ...(instance.statusMessage === undefined ? {} : { statusMessage: instance.statusMessage }),
  labels: instance.labels,
  labelFingerprint: fingerprintOf(instance.labels),
  metadata: {
    kind: 'compute#metadata',
    items: instance.metadata,
    fingerprint: fingerprintOf(instance.metadata),
  },
  tags: { items: instance.body.tags.items, fingerprint: fingerprintOf(instance.body.tags.items) },
  disks: instance.body.disks.map((disk, index) => ({
    kind: 'compute#attachedDisk',
    type: 'PERSISTENT',
    mode: 'READ_WRITE',
    index,
    boot: disk.boot,
    autoDelete: disk.autoDelete,
    source: link(pathOf(world, instance.zone, 'disks', instance.name)),
  })),
  networkInterfaces: [interfaceResource(world, instance)],
  scheduling: instance.body.scheduling,
  serviceAccounts: instance.body.serviceAccounts,
  shieldedInstanceConfig: instance.body.shieldedInstanceConfig ?? {},
  selfLink: link(pathOf(world, instance.zone, 'instances', instance.name)),
});

export const diskResource = (world: World, disk: Disk): Resource => ({
  kind: 'compute#disk',
  id: disk.id,
  creationTimestamp: time(disk.createdAt),
  name: disk.name,
  zone: zoneLink(world, disk.zone),
  status: 'READY',
  sizeGb: '10',
  sourceImage: link(disk.sourceImage),
  labels: disk.labels,
  ...(disk.user === undefined ? {} : { users: [link(pathOf(world, disk.zone, 'instances', disk.user))] }),
  selfLink: link(pathOf(world, disk.zone, 'disks', disk.name)),
});

export const operationResource = (world: World, operation: Operation): Resource => ({
  kind: 'compute#operation',
  id: operation.id,
  name: operation.name,
  zone: zoneLink(world, operation.zone),
  operationType: operation.type,
  targetLink: link(operation.target),
  targetId: operation.targetId,
  status: operation.status,
  user: 'caller@example.com',
  progress: operation.status === 'DONE' ? 100 : 0,
  insertTime: time(operation.insertTime),
  ...(operation.startTime === undefined ? {} : { startTime: time(operation.startTime) }),
  ...(operation.endTime === undefined ? {} : { endTime: time(operation.endTime) }),
  ...(operation.error
    ? {
        error: { errors: operation.error.errors },
        httpErrorStatusCode: operation.error.httpStatus,
        httpErrorMessage: operation.error.httpMessage,
      }
    : {}),
  selfLink: link(pathOf(world, operation.zone, 'operations', operation.name)),
});

export const zoneResource = (world: World, zone: string): Resource => ({
  kind: 'compute#zone',
  id: String(1000 + world.zones.indexOf(zone)),
  name: zone,
  description: zone,
  status: 'UP',
  region: link(`projects/${world.projectId}/regions/${zone.slice(0, zone.lastIndexOf('-'))}`),
  selfLink: zoneLink(world, zone),
});
