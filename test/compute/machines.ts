/** The life of instances: PROVISIONING, STAGING, RUNNING with a real proxy, STOPPING, TERMINATED or gone. */

import { alreadyExists, notFound, notReady, operationError, type OperationError } from './errors.ts';
import { startForwardProxy, type ForwardProxyOptions } from './forward-proxy.ts';
import type { InstanceBody } from './instance-body.ts';
import { startOperation, type OperationRequest } from './operations.ts';
import { inBackground, keyOf, pathOf, type Instance, type Operation, type World } from './world.ts';

const DEFAULT_PORT = 3128;

/** Throws 404 when there is none. */
export const findInstance = (world: World, zone: string, name: string): Instance => {
  const instance = world.instances.get(keyOf(zone, name));
  if (!instance) throw notFound(pathOf(world, zone, 'instances', name));
  return instance;
};

const isAlive = (world: World, instance: Instance): boolean =>
  world.instances.get(keyOf(instance.zone, instance.name)) === instance;

const metadataOf = (instance: Instance, key: string): string | undefined =>
  instance.metadata.find((item) => item.key === key)?.value;

const wantsNat = (instance: Instance): boolean =>
  (instance.body.networkInterfaces[0]?.accessConfigs.length ?? 0) > 0;

/** The address that a machine's proxy listens on. */
export const addressOf = (instance: Instance): string | undefined => instance.natIP ?? instance.networkIP;

const proxyOptions = (world: World, instance: Instance, host: string): ForwardProxyOptions => {
  const username = metadataOf(instance, 'proxy-username');
  const password = metadataOf(instance, 'proxy-password');
  const mode = world.faults.strike('proxy', { zone: instance.zone, name: instance.name })?.mode;
  return {
    host,
    port: Number(metadataOf(instance, 'proxy-port') ?? DEFAULT_PORT),
    ...(username === undefined || password === undefined ? {} : { credentials: { username, password } }),
    ...(mode ? { mode } : {}),
  };
};

const openPort = async (world: World, instance: Instance, life: number): Promise<void> => {
  const host = addressOf(instance);
  if (host === undefined || instance.life !== life) return;
  const proxy = await startForwardProxy(proxyOptions(world, instance, host));
  if (instance.life !== life) await proxy.stop();
  else instance.proxy = proxy;
};

/** Opens the machine's port after its boot time, unless it ends before. */
const boot = (world: World, instance: Instance): void => {
  const fault = world.faults.strike('boot', { zone: instance.zone, name: instance.name });
  const delay = fault ? fault.delayMs : world.bootMs;
  if (delay === null) return;
  const { life } = instance;
  world.timers.after(delay, () =>
    inBackground(world, `proxy of ${instance.name}`, openPort(world, instance, life)),
  );
};

const closePort = (world: World, instance: Instance): void => {
  instance.life += 1;
  const { proxy } = instance;
  instance.proxy = undefined;
  if (proxy) inBackground(world, `closing the proxy of ${instance.name}`, proxy.stop());
};

const releaseNat = (world: World, instance: Instance): void => {
  if (instance.natIP !== undefined) world.addresses.release(instance.natIP);
  instance.natIP = undefined;
};

/** What an operation does to its instance. */
type Work = Pick<OperationRequest, 'halfway' | 'finish' | 'fail'>;

const NOTHING: Work = { finish: () => undefined };

const exhausted = (): OperationError =>
  operationError('IP_SPACE_EXHAUSTED', 'There are no free IP addresses left.');

/** From PROVISIONING over STAGING halfway to RUNNING in the end. */
const bringUp = (world: World, instance: Instance): Work => {
  instance.status = 'PROVISIONING';
  instance.statusMessage = undefined;
  instance.life += 1;
  const { life } = instance;
  const halfway = (): void => {
    if (instance.life === life && instance.status === 'PROVISIONING') instance.status = 'STAGING';
  };
  const finish = (): OperationError | undefined => {
    if (instance.life !== life) {
      return operationError(
        'RESOURCE_NOT_FOUND',
        `The resource '${pathOf(world, instance.zone, 'instances', instance.name)}' was not found`,
        404,
        'NOT FOUND',
      );
    }
    try {
      instance.networkIP ??= world.addresses.next();
      if (wantsNat(instance)) instance.natIP ??= world.addresses.next();
    } catch {
      remove(world, instance);
      return exhausted();
    }
    instance.status = 'RUNNING';
    boot(world, instance);
    return undefined;
  };
  return { halfway, finish };
};

/** Takes an instance away at once, with its addresses and its boot disk where that goes with it. */
export const remove = (world: World, instance: Instance): void => {
  closePort(world, instance);
  releaseNat(world, instance);
  if (instance.networkIP !== undefined) world.addresses.release(instance.networkIP);
  instance.networkIP = undefined;
  const key = keyOf(instance.zone, instance.name);
  if (!isAlive(world, instance)) return;
  world.instances.delete(key);
  const disk = world.disks.get(key);
  const goesToo = instance.body.disks.find(({ boot: isBoot }) => isBoot)?.autoDelete;
  const isKept = disk && world.faults.strike('keptDisk', { zone: instance.zone, name: instance.name });
  if (goesToo && !isKept) world.disks.delete(key);
  else if (disk) disk.user = undefined;
};

/** STOPPING now, TERMINATED in the end. */
const bringDown = (world: World, instance: Instance): Work => {
  instance.status = 'STOPPING';
  closePort(world, instance);
  const { life } = instance;
  const finish = (): undefined => {
    if (instance.life !== life) return;
    instance.status = 'TERMINATED';
    releaseNat(world, instance);
  };
  return { finish };
};

const operate = (
  world: World,
  instance: Instance,
  verb: 'insert' | 'delete' | 'start' | 'stop' | 'compute.instances.preempted',
  requestId: string | undefined,
  work: Work,
): Operation =>
  startOperation(world, {
    type: verb,
    method: verb === 'compute.instances.preempted' ? undefined : `instances.${verb}`,
    zone: instance.zone,
    target: pathOf(world, instance.zone, 'instances', instance.name),
    targetId: instance.id,
    name: instance.name,
    requestId,
    ...work,
  });

/** Makes an instance. Throws 409 when the name, or that of its boot disk, is taken in the zone. */
export const insertInstance = (
  world: World,
  zone: string,
  body: InstanceBody,
  requestId: string | undefined,
): Operation => {
  const key = keyOf(zone, body.name);
  if (world.instances.has(key)) throw alreadyExists(pathOf(world, zone, 'instances', body.name));
  if (world.disks.has(key)) throw alreadyExists(pathOf(world, zone, 'disks', body.name));
  const instance: Instance = {
    id: world.nextId(),
    name: body.name,
    zone,
    body,
    createdAt: world.now(),
    status: 'PROVISIONING',
    statusMessage: undefined,
    labels: body.labels,
    metadata: body.metadata.items,
    networkIP: undefined,
    natIP: undefined,
    proxy: undefined,
    life: 0,
  };
  const params = body.disks.find((disk) => disk.boot)?.initializeParams;
  world.instances.set(key, instance);
  world.disks.set(key, {
    id: world.nextId(),
    name: body.name,
    zone,
    sourceImage: params?.sourceImage ?? '',
    labels: params?.labels ?? {},
    createdAt: world.now(),
    user: body.name,
  });
  const fail = (): void => {
    if (!isAlive(world, instance)) return;
    remove(world, instance);
    world.disks.delete(key);
  };
  return operate(world, instance, 'insert', requestId, { ...bringUp(world, instance), fail });
};

export const deleteInstance = (world: World, instance: Instance, requestId?: string): Operation => {
  const before = instance.status;
  instance.status = 'STOPPING';
  closePort(world, instance);
  const finish = (): undefined => {
    remove(world, instance);
  };
  const fail = (): void => {
    instance.status = before === 'RUNNING' ? 'TERMINATED' : before;
  };
  return operate(world, instance, 'delete', requestId, { finish, fail });
};

export const stopInstance = (world: World, instance: Instance, requestId?: string): Operation => {
  if (instance.status === 'TERMINATED') return operate(world, instance, 'stop', requestId, NOTHING);
  if (instance.status !== 'RUNNING') throw notReady(pathOf(world, instance.zone, 'instances', instance.name));
  return operate(world, instance, 'stop', requestId, bringDown(world, instance));
};

export const startInstance = (world: World, instance: Instance, requestId?: string): Operation => {
  if (instance.status === 'RUNNING') return operate(world, instance, 'start', requestId, NOTHING);
  if (instance.status !== 'TERMINATED') {
    throw notReady(pathOf(world, instance.zone, 'instances', instance.name));
  }
  const fail = (): void => {
    instance.status = 'TERMINATED';
    instance.life += 1;
  };
  return operate(world, instance, 'start', requestId, { ...bringUp(world, instance), fail });
};

/** The provider takes the machine back: it stops, or is deleted where it was made so. */
export const preemptInstance = (world: World, instance: Instance): Operation => {
  const down = bringDown(world, instance);
  const isDeleted = instance.body.scheduling.instanceTerminationAction === 'DELETE';
  const finish = (): undefined => {
    if (isDeleted) remove(world, instance);
    else down.finish();
    instance.statusMessage = 'Instance was preempted.';
  };
  return operate(world, instance, 'compute.instances.preempted', undefined, { finish });
};
