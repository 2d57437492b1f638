/** The calls of the API: each takes a request and gives the JSON of its answer, or throws an `ApiError`. */

import { ApiError, invalid, notFound } from './errors.ts';
import type { ApiMethod } from './faults.ts';
import { parseInstanceBody, parseMetadata, parseSetLabels } from './instance-body.ts';
import { aggregatedList } from './aggregated.ts';
import { deleteInstance, findInstance, insertInstance, startInstance, stopInstance } from './machines.ts';
import { replayed, startOperation, whenDone } from './operations.ts';
import { pageOf, select } from './pages.ts';
import {
  diskResource,
  instanceResource,
  operationResource,
  zoneLink,
  zoneResource,
  type Resource,
} from './resources.ts';
import { fingerprintOf, keyOf, pathOf, type Instance, type Operation, type World } from './world.ts';

export interface ApiRequest {
  readonly method: ApiMethod;
  /** Empty for calls that have none. */
  readonly zone: string;
  readonly name: string;
  readonly query: URLSearchParams;
  readonly body: unknown;
  /** The caller takes a list with zones missing. */
  readonly allowsPartial: boolean;
}

type Call = (world: World, request: ApiRequest) => Resource | Promise<Resource>;

const WAIT_MS = 120_000;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/iu;

const requestIdOf = (query: URLSearchParams): string | undefined => {
  const id = query.get('requestId') ?? undefined;
  if (id !== undefined && (!UUID.test(id) || /^[0-]+$/u.test(id))) {
    throw invalid('requestId', id, 'Must be a valid UUID, and not the zero one.');
  }
  return id;
};

/** Starts work once per request id: a repeated request gets the operation of the first. */
const once =
  (start: (world: World, request: ApiRequest, requestId: string | undefined) => Operation): Call =>
  (world, request) => {
    const requestId = requestIdOf(request.query);
    return operationResource(world, replayed(world, requestId) ?? start(world, request, requestId));
  };

const change = (
  world: World,
  instance: Instance,
  request: ApiRequest,
  requestId: string | undefined,
  apply: () => void,
): Operation =>
  startOperation(world, {
    type: request.method === 'instances.setLabels' ? 'setLabels' : 'setMetadata',
    method: request.method,
    zone: instance.zone,
    target: pathOf(world, instance.zone, 'instances', instance.name),
    targetId: instance.id,
    name: instance.name,
    requestId,
    finish: () => {
      apply();
      return undefined;
    },
  });

const checkFingerprint = (given: string | undefined, value: unknown, what: string): void => {
  if (given !== fingerprintOf(value)) {
    throw new ApiError(
      412,
      'conditionNotMet',
      `Supplied ${what} fingerprint does not match the current one.`,
    );
  }
};

const insert: Call = once((world, request, requestId) => {
  if (world.faults.strike('quotaRefused', request)) {
    const region = request.zone.slice(0, -2);
    throw new ApiError(403, 'quotaExceeded', `Quota 'CPUS' exceeded. Limit: 24.0 in region ${region}.`);
  }
  const body = parseInstanceBody(request.body, world.projectId, request.zone);
  return insertInstance(world, request.zone, body, requestId);
});

const setLabels: Call = once((world, request, requestId) => {
  const instance = findInstance(world, request.zone, request.name);
  const { labels, labelFingerprint } = parseSetLabels(request.body);
  checkFingerprint(labelFingerprint, instance.labels, 'labels');
  return change(world, instance, request, requestId, () => {
    instance.labels = labels;
  });
});

const setMetadata: Call = once((world, request, requestId) => {
  const instance = findInstance(world, request.zone, request.name);
  const { items, fingerprint } = parseMetadata(request.body);
  checkFingerprint(fingerprint, instance.metadata, 'metadata');
  return change(world, instance, request, requestId, () => {
    instance.metadata = items;
  });
});

const list = (kind: string, world: World, request: ApiRequest, all: readonly Resource[]): Resource => ({
  kind,
  id: `projects/${world.projectId}/zones/${request.zone}`,
  ...pageOf(select(all, request.query), request.query, world.longestPage),
  selfLink: zoneLink(world, request.zone),
});

const inZone = <T extends { readonly zone: string }>(things: ReadonlyMap<string, T>, zone: string): T[] =>
  [...things.values()].filter((thing) => thing.zone === zone);

const findOperation = (world: World, request: ApiRequest): Operation => {
  const operation = world.operations.get(request.name);
  if (operation?.zone !== request.zone) {
    throw notFound(pathOf(world, request.zone, 'operations', request.name));
  }
  return operation;
};

const findDisk = (world: World, request: ApiRequest): Resource => {
  const disk = world.disks.get(keyOf(request.zone, request.name));
  if (!disk) throw notFound(pathOf(world, request.zone, 'disks', request.name));
  return diskResource(world, disk);
};

const deleteDisk: Call = once((world, request, requestId) => {
  const key = keyOf(request.zone, request.name);
  const disk = world.disks.get(key);
  const target = pathOf(world, request.zone, 'disks', request.name);
  if (!disk) throw notFound(target);
  if (disk.user !== undefined) {
    throw new ApiError(400, 'resourceInUseByAnotherResource', `The disk resource '${target}' is in use`);
  }
  return startOperation(world, {
    type: 'delete',
    method: request.method,
    zone: request.zone,
    target,
    targetId: disk.id,
    name: request.name,
    requestId,
    finish: () => {
      world.disks.delete(key);
      return undefined;
    },
  });
});

/** Every call that is known, by its method. */
export const CALLS: Readonly<Record<ApiMethod, Call>> = {
  'projects.get': (world) => ({ kind: 'compute#project', id: '1000000000000000001', name: world.projectId }),
  'zones.list': (world, { query }) => ({
    kind: 'compute#zoneList',
    ...pageOf(
      select(
        world.zones.map((zone) => zoneResource(world, zone)),
        query,
      ),
      query,
      world.longestPage,
    ),
  }),
  'zones.get': (world, { zone }) => zoneResource(world, zone),
  'instances.insert': insert,
  'instances.get': (world, { zone, name }) => instanceResource(world, findInstance(world, zone, name)),
  'instances.list': (world, request) =>
    list(
      'compute#instanceList',
      world,
      request,
      inZone(world.instances, request.zone).map((instance) => instanceResource(world, instance)),
    ),
  'instances.aggregatedList': (world, request) =>
    aggregatedList(
      world,
      'instance',
      [...world.instances.values()].map((instance) => instanceResource(world, instance)),
      request,
    ),
  'instances.delete': once((world, { zone, name }, requestId) =>
    deleteInstance(world, findInstance(world, zone, name), requestId),
  ),
  'instances.start': once((world, { zone, name }, requestId) =>
    startInstance(world, findInstance(world, zone, name), requestId),
  ),
  'instances.stop': once((world, { zone, name }, requestId) =>
    stopInstance(world, findInstance(world, zone, name), requestId),
  ),
  'instances.setLabels': setLabels,
  'instances.setMetadata': setMetadata,
  'disks.list': (world, request) =>
    list(
      'compute#diskList',
      world,
      request,
      inZone(world.disks, request.zone).map((disk) => diskResource(world, disk)),
    ),
  'disks.aggregatedList': (world, request) =>
    aggregatedList(
      world,
      'disk',
      [...world.disks.values()].map((disk) => diskResource(world, disk)),
      request,
    ),
  'disks.get': findDisk,
  'disks.delete': deleteDisk,
  'operations.get': (world, request) => operationResource(world, findOperation(world, request)),
  'operations.list': (world, request) =>
    list(
      'compute#operationList',
      world,
      request,
      inZone(world.operations, request.zone).map((operation) => operationResource(world, operation)),
    ),
  'operations.wait': async (world, request) => {
    const operation = findOperation(world, request);
    await whenDone(world, operation, WAIT_MS);
    return operationResource(world, operation);
  },
};
