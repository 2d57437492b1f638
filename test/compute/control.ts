/** What a test can see and do behind the API's back. */

import type { ApiCall, CallLog, CallMatch } from './calls.ts';
import type { ActiveFault, Fault } from './faults.ts';
import type { ProxyMode } from './forward-proxy.ts';
import { addressOf, preemptInstance, remove, startInstance, stopInstance } from './machines.ts';
import { whenDone } from './operations.ts';
import type { Disk, Instance, InstanceStatus, Operation, World } from './world.ts';

export interface InstanceView {
  readonly id: string;
  readonly name: string;
  readonly zone: string;
  readonly status: InstanceStatus;
  readonly labels: Readonly<Record<string, string>>;
  /** Where its proxy listens, or will. */
  readonly address?: string;
  readonly port?: number;
  /** True while the port is open. */
  readonly listening: boolean;
  /** Requests that its proxy has taken since it booted. */
  readonly requests: number;
}

export interface DiskView {
  readonly name: string;
  readonly zone: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The instance that it is attached to. */
  readonly user?: string;
}

/** Instances are named by name; where two zones have one, the first made counts unless a zone is given. */
export interface ComputeControl {
  /** Switches a fault on; the id switches it off. */
  addFault(fault: Fault): string;
  removeFault(id: string): boolean;
  clearFaults(): void;
  faults(): readonly ActiveFault[];
  calls(match?: CallMatch): readonly ApiCall[];
  countCalls(match?: CallMatch): number;
  resetCalls(): void;
  instances(): readonly InstanceView[];
  disks(): readonly DiskView[];
  /** Each resolves when it has happened. They throw RangeError for an instance that does not exist. */
  preempt(name: string, zone?: string): Promise<void>;
  stop(name: string, zone?: string): Promise<void>;
  start(name: string, zone?: string): Promise<void>;
  /** Stops and starts it: another external address, where it has one. */
  restart(name: string, zone?: string): Promise<void>;
  /** Gone at once, without an operation. */
  vanish(name: string, zone?: string): Promise<void>;
  setProxyMode(name: string, mode: ProxyMode, zone?: string): Promise<void>;
}

const view = (instance: Instance): InstanceView => {
  const address = addressOf(instance);
  return {
    id: instance.id,
    name: instance.name,
    zone: instance.zone,
    status: instance.status,
    labels: instance.labels,
    ...(address === undefined ? {} : { address }),
    ...(instance.proxy ? { port: instance.proxy.port } : {}),
    listening: instance.proxy !== undefined,
    requests: instance.proxy?.requests() ?? 0,
  };
};

const diskView = ({ name, zone, labels, user }: Disk): DiskView => ({
  name,
  zone,
  labels,
  ...(user === undefined ? {} : { user }),
});

const LONGEST_WAIT_MS = 60_000;

export const makeControl = (world: World, calls: CallLog): ComputeControl => {
  const find = (name: string, zone?: string): Instance => {
    for (const instance of world.instances.values()) {
      if (instance.name === name && (zone === undefined || instance.zone === zone)) return instance;
    }
    throw new RangeError(`there is no instance ${name}`);
  };
  const finished = (operation: Operation): Promise<void> => whenDone(world, operation, LONGEST_WAIT_MS);
  const settled = async (): Promise<void> => {
    await Promise.all(world.background);
  };
  const stop = async (instance: Instance): Promise<void> => {
    await finished(stopInstance(world, instance));
    await settled();
  };
  return {
    addFault: (fault) => world.faults.add(fault),
    removeFault: (id) => world.faults.remove(id),
    clearFaults: () => world.faults.clear(),
    faults: () => world.faults.list(),
    calls: (match) => calls.find(match),
    countCalls: (match) => calls.find(match).length,
    resetCalls: () => calls.reset(),
    instances: () => [...world.instances.values()].map(view),
    disks: () => [...world.disks.values()].map(diskView),
    preempt: async (name, zone) => {
      await finished(preemptInstance(world, find(name, zone)));
      await settled();
    },
    stop: async (name, zone) => stop(find(name, zone)),
    start: async (name, zone) => finished(startInstance(world, find(name, zone))),
    restart: async (name, zone) => {
      const instance = find(name, zone);
      await stop(instance);
      await finished(startInstance(world, instance));
    },
    vanish: async (name, zone) => {
      remove(world, find(name, zone));
      await settled();
    },
    setProxyMode: async (name, mode, zone) => {
      const { proxy } = find(name, zone);
      if (!proxy) throw new RangeError(`${name} does not listen`);
      await proxy.setMode(mode);
    },
  };
};
