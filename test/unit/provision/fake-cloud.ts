/** The cloud of a world: machines, operations that take their time, refusals, lost answers. */

import { SystemError } from '#shared/app/errors.ts';
import type {
  Leftover,
  Machine,
  MachineProvider,
  MachineSpec,
  OperationResult,
} from '#shared/domain/machine.ts';
import { publications } from '#shared/domain/record.ts';

import { OPERATION_MS, effect, nextNumber, type Fault, type World } from './world.ts';

const takeFault = <K extends Fault['kind']>(
  world: World,
  kind: K,
): Extract<Fault, { kind: K }> | undefined => {
  const isWanted = (fault: Fault): fault is Extract<Fault, { kind: K }> => fault.kind === kind;
  const fault = world.faults.find(isWanted);
  if (fault) world.faults.splice(world.faults.indexOf(fault), 1);
  return fault;
};

const begin = (world: World, zone: string, finish: () => OperationResult) => {
  const name = `op-${nextNumber(world)}`;
  world.running.set(name, { due: world.now + OPERATION_MS, finish });
  return { zone, name };
};

const insert = (world: World, spec: MachineSpec, zone: string) => {
  const key = `${zone}/${spec.name}`;
  if (world.machines.has(key) || world.disks.has(key)) throw new SystemError('Conflict', 'the name exists');
  const refused = takeFault(world, 'refuse');
  if (refused) throw new SystemError(refused.code, 'refused');
  const failed = takeFault(world, 'failOperation');
  const id = nextNumber(world);
  if (!failed) {
    world.machines.set(key, {
      name: spec.name,
      zone,
      instanceId: `i-${id}`,
      providerID: `gce://project/${key}`,
      state: 'creating',
      installation: 'prod',
      uid: spec.ref.uid,
      hash: spec.hash,
    });
  }
  const operation = begin(world, zone, () => {
    if (failed) return { kind: 'failed', behaviour: failed.code, code: failed.code, message: 'It failed.' };
    const machine = world.machines.get(key);
    if (machine?.state === 'creating')
      world.machines.set(key, { ...machine, state: 'running', address: `203.0.113.${id % 250}` });
    return { kind: 'succeeded' };
  });
  if (takeFault(world, 'lostAnswer')) throw new SystemError('Transient', 'no answer');
  return operation;
};

const remove = (world: World, machine: Machine) => {
  const key = `${machine.zone}/${machine.name}`;
  const real = world.machines.get(key);
  if (real?.instanceId !== machine.instanceId) return undefined;
  if (
    world.record &&
    publications(world.record.value).some(({ endpoint }) => endpoint.instanceId === machine.instanceId)
  )
    world.violations.push(`deleted ${machine.name} while it was published`);
  if (real.state === 'stopping') world.violations.push(`deleted ${machine.name} twice`);
  const { address: _gone, ...rest } = real;
  world.machines.set(key, { ...rest, state: 'stopping' });
  const disk = takeFault(world, 'keptDisk');
  return begin(world, machine.zone, () => {
    world.machines.delete(key);
    if (disk)
      world.disks.set(key, {
        name: machine.name,
        zone: machine.zone,
        id: `d-${machine.instanceId}`,
        installation: 'prod',
        uid: machine.uid ?? '',
      });
    return { kind: 'succeeded' };
  });
};

const removeDisk = (world: World, { name, zone }: Leftover) => {
  world.calls.push('deleteDisk');
  return begin(world, zone, () => {
    world.disks.delete(`${zone}/${name}`);
    return { kind: 'succeeded' };
  });
};

const restart = (world: World, machine: Machine) =>
  begin(world, machine.zone, () => {
    const key = `${machine.zone}/${machine.name}`;
    const real = world.machines.get(key);
    if (real?.state === 'stopped')
      world.machines.set(key, { ...real, state: 'running', address: `203.0.113.${nextNumber(world) % 250}` });
    return { kind: 'succeeded' };
  });

/** The cloud goes on by itself: what is due by now has ended. */
export const advance = (world: World): void => {
  for (const [name, { due, finish }] of world.running)
    if (due <= world.now) {
      world.running.delete(name);
      world.results.set(name, finish());
    }
};

/** Waits for the end of an operation; `unknown` for one that nobody remembers. */
export const awaitOperation = (world: World, name: string): OperationResult => {
  world.now = Math.max(world.now, world.running.get(name)?.due ?? 0);
  advance(world);
  return world.results.get(name) ?? { kind: 'unknown' };
};

export const fakeProvider = (world: World): MachineProvider => ({
  name: 'gcp',
  get: async (name, zone) => {
    world.calls.push('get');
    advance(world);
    return world.machines.get(`${zone}/${name}`);
  },
  create: (spec, zone) => effect(world, 'create', () => insert(world, spec, zone)),
  delete: (machine) => effect(world, 'delete', () => remove(world, machine)),
  listLeftovers: () => Promise.reject(new Error('provision never calls this')),
  leftover: async (name, zone) => world.disks.get(`${zone}/${name}`),
  deleteLeftover: (leftover) => effect(world, 'deleteLeftover', () => removeDisk(world, leftover)),
  start: (machine) => effect(world, 'start', () => restart(world, machine)),
  wait: async (operation) => awaitOperation(world, operation.name),
  list: async (uid) => ({
    machines: [...world.machines.values()].filter((one) => uid === undefined || one.uid === uid),
    unknownZones: [],
    partial: false,
  }),
  close: async () => undefined,
});
