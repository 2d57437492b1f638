/** The calls that we make of Compute Engine. Replies are what the client library gives, parsed by who reads them. */

import type { protos } from '@google-cloud/compute';
import type { InstancesClient } from '@google-cloud/compute/build/src/v1/instances_client.js';

import { SystemError } from '#shared/app/errors.ts';
import type { OperationRef } from '#shared/domain/machine.ts';

import { callOptions, lazyClients, type LazyClients } from './client.ts';
import { lastSegment } from './machine.ts';
import { operationSchema, type Operation } from './operation.ts';

type InstanceBody = protos.google.cloud.compute.v1.IInstance;
/** Which machine is meant, or which disk. */
export interface InstanceKey {
  readonly zone: string;
  readonly name: string;
}

/** All throw `SystemError`. */
export interface ComputeApi {
  getInstance(key: InstanceKey): Promise<unknown>;
  insertInstance(zone: string, body: InstanceBody, requestId: string): Promise<OperationRef>;
  deleteInstance(key: InstanceKey, requestId: string): Promise<OperationRef>;
  startInstance(key: InstanceKey, requestId: string): Promise<OperationRef>;
  getDisk(key: InstanceKey): Promise<unknown>;
  deleteDisk(key: InstanceKey, requestId: string): Promise<OperationRef>;
  /** One page of the list over all zones, with its warnings. */
  instancesPage(filter: string, pageToken: string | undefined): Promise<unknown>;
  disksPage(filter: string, pageToken: string | undefined): Promise<unknown>;
  /** The newest operations of a zone, at most `limit`. */
  listOperations(zone: string, limit: number): Promise<readonly Operation[]>;
  getOperation(operation: OperationRef): Promise<Operation>;
  close(): Promise<void>;
}

const PAGE_SIZE = 500;

const refOf = (zone: string, call: string, name: string | null | undefined): OperationRef => {
  if (!name) throw new SystemError('Transient', `Compute Engine ${call} named no operation.`);
  return { zone, name: lastSegment(name) };
};

/** The library's iterator hides `unreachables`; the call beneath it gives the whole reply as its third value. */
const wholePage = async (
  { innerApiCalls }: Pick<InstancesClient, 'innerApiCalls'>,
  project: string,
  filter: string,
  pageToken: string | undefined,
): Promise<unknown> => {
  const list = innerApiCalls['aggregatedList'];
  if (!list) throw new SystemError('NotConfigured', 'The client library has no aggregatedList.');
  const request = {
    project,
    filter,
    maxResults: PAGE_SIZE,
    ...(pageToken === undefined ? {} : { pageToken }),
  };
  const reply: unknown = await Reflect.apply(list, undefined, [request, callOptions()]);
  const parts: readonly unknown[] = Array.isArray(reply) ? reply : [];
  return parts[2];
};

const instanceCalls = (clients: LazyClients, project: string) => ({
  getInstance: ({ zone, name }: InstanceKey): Promise<unknown> =>
    clients.call('get', async ({ instances }) => {
      const [instance] = await instances.get({ project, zone, instance: name }, callOptions());
      return instance;
    }),
  insertInstance: (zone: string, instanceResource: InstanceBody, requestId: string) =>
    clients.call('insert', async ({ instances }) => {
      const request = { project, zone, instanceResource, requestId };
      const [operation] = await instances.insert(request, callOptions());
      return refOf(zone, 'insert', operation.latestResponse.name);
    }),
  deleteInstance: ({ zone, name }: InstanceKey, requestId: string) =>
    clients.call('delete', async ({ instances }) => {
      const request = { project, zone, instance: name, requestId };
      const [operation] = await instances.delete(request, callOptions());
      return refOf(zone, 'delete', operation.latestResponse.name);
    }),
  startInstance: ({ zone, name }: InstanceKey, requestId: string) =>
    clients.call('start', async ({ instances }) => {
      const request = { project, zone, instance: name, requestId };
      const [operation] = await instances.start(request, callOptions());
      return refOf(zone, 'start', operation.latestResponse.name);
    }),
  instancesPage: (filter: string, pageToken: string | undefined): Promise<unknown> =>
    clients.call('aggregatedList', ({ instances }) => wholePage(instances, project, filter, pageToken)),
});

const diskCalls = (clients: LazyClients, project: string) => ({
  getDisk: ({ zone, name }: InstanceKey): Promise<unknown> =>
    clients.callDisks('disks.get', async (disks) => {
      const [disk] = await disks.get({ project, zone, disk: name }, callOptions());
      return disk;
    }),
  deleteDisk: ({ zone, name }: InstanceKey, requestId: string) =>
    clients.callDisks('disks.delete', async (disks) => {
      const [operation] = await disks.delete({ project, zone, disk: name, requestId }, callOptions());
      return refOf(zone, 'disks.delete', operation.latestResponse.name);
    }),
  disksPage: (filter: string, pageToken: string | undefined): Promise<unknown> =>
    clients.callDisks('disks.aggregatedList', (disks) => wholePage(disks, project, filter, pageToken)),
});

const operationCalls = (clients: LazyClients, project: string) => ({
  listOperations: (zone: string, limit: number): Promise<readonly Operation[]> =>
    clients.call('operations.list', async ({ operations }) => {
      const request = { project, zone, maxResults: limit, orderBy: 'creationTimestamp desc' };
      const [found] = await operations.list(request, callOptions());
      return operationSchema.array().parse(found);
    }),
  getOperation: ({ zone, name }: OperationRef): Promise<Operation> =>
    clients.call('operations.get', async ({ operations }) => {
      const [operation] = await operations.get({ project, zone, operation: name }, callOptions());
      return operationSchema.parse(operation);
    }),
});

/** Opens nothing by itself: the clients are made at the first call. */
export const openComputeApi = (projectId: string, endpoint: string | undefined): ComputeApi => {
  const clients = lazyClients(endpoint);
  return {
    ...instanceCalls(clients, projectId),
    ...diskCalls(clients, projectId),
    ...operationCalls(clients, projectId),
    close: () => clients.close(),
  };
};
