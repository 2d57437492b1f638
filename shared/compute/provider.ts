/** Compute Engine as a provider of machines. */

import type { Clock } from '#shared/app/clock.ts';
import { hasCode } from '#shared/app/errors.ts';
import type { Ids } from '#shared/app/ids.ts';
import type { Log } from '#shared/app/log.ts';
import type { Leftover, Machine, MachineProvider } from '#shared/domain/machine.ts';

import { openComputeApi } from './api.ts';
import { leftoverOf } from './disk.ts';
import { listDisks, listFleet } from './fleet.ts';
import { instanceBody } from './instance-request.ts';
import { readInstance, toMachine } from './machine.ts';
import { makeOperationPoller } from './operations.ts';

export interface ComputeProviderOptions {
  readonly projectId: string;
  /** Whose machines these are; every machine carries it, every list asks for it. */
  readonly installation: string;
  /** `http://host:port` of a stand-in; absent = the real API. */
  readonly endpoint?: string | undefined;
  readonly ids: Ids;
  readonly clock: Clock;
  readonly log: Log;
}

/** Undefined for a plain "not found", and for nothing else. */
const orAbsent = async <T>(work: Promise<T>): Promise<T | undefined> => {
  try {
    return await work;
  } catch (error) {
    if (hasCode(error, 'NotFound')) return undefined;
    throw error;
  }
};

/** Opens nothing by itself: clients are made at the first call. */
export const openComputeProvider = (options: ComputeProviderOptions): MachineProvider => {
  const { projectId, installation, ids } = options;
  const api = openComputeApi(projectId, options.endpoint);
  const poller = makeOperationPoller(
    {
      listOperations: (zone, limit) => api.listOperations(zone, limit),
      getOperation: (operation) => orAbsent(api.getOperation(operation)),
    },
    options.clock,
    options.log,
  );
  const get = async (name: string, zone: string): Promise<Machine | undefined> => {
    const instance = await orAbsent(api.getInstance({ zone, name }));
    return instance === undefined ? undefined : toMachine(readInstance(instance), projectId);
  };
  // A boot disk has its machine's name.
  const leftover = async (name: string, zone: string): Promise<Leftover | undefined> => {
    const disk = await orAbsent(api.getDisk({ zone, name }));
    return disk === undefined ? undefined : leftoverOf(disk);
  };
  return {
    name: 'gcp',
    get,
    create: async (spec, zone, requestId) =>
      api.insertInstance(zone, instanceBody(spec, { projectId, installation, zone }), requestId),
    delete: async (machine) => {
      // A name is not a machine: what bears it now is deleted only if it is the very one that is meant.
      const current = await get(machine.name, machine.zone);
      if (current?.instanceId !== machine.instanceId) return undefined;
      return orAbsent(api.deleteInstance(machine, ids.uuid()));
    },
    leftover,
    deleteLeftover: async (meant) => {
      const current = await leftover(meant.name, meant.zone);
      if (current?.id !== meant.id || current.installation !== installation) return undefined;
      return orAbsent(api.deleteDisk(meant, ids.uuid()));
    },
    start: (machine) => api.startInstance(machine, ids.uuid()),
    wait: (operation, signal) => poller.wait(operation, signal),
    list: (uid) =>
      listFleet((filter, token) => api.instancesPage(filter, token), projectId, { installation, uid }),
    listLeftovers: () => listDisks((filter, token) => api.disksPage(filter, token), { installation }),
    close: async () => {
      poller.close();
      await api.close();
    },
  };
};
