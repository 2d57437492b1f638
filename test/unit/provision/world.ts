/** A world for provision: a cluster, a store and a cloud with memory, in which every call can fail, crash or lose its answer. */

import { Timestamp } from '@google-cloud/firestore';

import type { Parts } from '../../../functions/provision/run.ts';
import { SystemError, type ErrorCode } from '#shared/app/errors.ts';
import { makeLog } from '#shared/app/log.ts';
import type { Machine, MachineProvider, MachineSpec, OperationResult } from '#shared/domain/machine.ts';
import type { ProxyRef } from '#shared/domain/proxy.ts';
import { publications, type ProxyRecord } from '#shared/domain/record.ts';
import type { ProxyObject, SecretReading } from '#shared/kubernetes/cluster.ts';

export const UID = '12345678-1234-4123-8123-123456789abc';
export const REF: ProxyRef = { namespace: 'crawlers', name: 'p1', uid: UID };
export const START = Date.parse('2026-11-30T12:00:00Z');

/** The process died here. */
export class Crash extends Error {}

export type Fault =
  | { readonly kind: 'crash'; readonly in: number }
  | { readonly kind: 'lostAnswer' }
  | { readonly kind: 'refuse'; readonly code: ErrorCode }
  | { readonly kind: 'failOperation'; readonly code: 'CapacityUnavailable' | 'QuotaExceeded' | 'Transient' };

/** How long the cloud takes for anything. */
const OPERATION_MS = 20_000;

interface Running {
  readonly due: number;
  readonly finish: () => OperationResult;
}

export type Spec = ProxyObject['spec'];

export const gcpSpec = (change: Partial<Spec> = {}): Spec => ({
  provider: 'gcp',
  maxLeases: 5,
  drainTimeoutSeconds: 60,
  gcp: {
    zones: ['europe-west1-b', 'europe-west1-c'],
    machineType: 'e2-micro',
    image: 'projects/p/global/images/family/ubuntu',
  },
  ...change,
});

export interface World {
  now: number;
  proxy: ProxyObject | undefined;
  readonly secrets: Map<string, SecretReading>;
  record: { value: ProxyRecord; version: number } | undefined;
  readonly credentials: Map<string, unknown>;
  /** Endpoint id → expiry of its only lease. */
  readonly leases: Map<string, number>;
  /** `zone/name` → machine. */
  readonly machines: Map<string, Machine>;
  readonly running: Map<string, Running>;
  readonly results: Map<string, OperationResult>;
  readonly faults: Fault[];
  readonly calls: string[];
  readonly probes: number[];
  /** What must never happen and did. */
  readonly violations: string[];
  counter: number;
}

export const newWorld = (spec: Spec = gcpSpec()): World => ({
  now: START,
  proxy: {
    apiVersion: 'crawl.example.com/v1alpha1',
    kind: 'Proxy',
    metadata: {
      ...REF,
      resourceVersion: '1',
      generation: 1,
      creationTimestamp: '2026-11-30T12:00:00Z',
    },
    spec,
  },
  secrets: new Map(),
  record: undefined,
  credentials: new Map(),
  leases: new Map(),
  machines: new Map(),
  running: new Map(),
  results: new Map(),
  faults: [],
  calls: [],
  probes: [],
  violations: [],
  counter: 0,
});

const next = (world: World): number => (world.counter += 1);

/** Every effect goes through here: it is logged, and a scripted crash ends it before or after it has happened. */
const effect = async <T>(world: World, name: string, work: () => T): Promise<T> => {
  const [fault] = world.faults;
  if (fault?.kind !== 'crash') {
    world.calls.push(name);
    return work();
  }
  world.faults[0] = { kind: 'crash', in: fault.in - 1 };
  if (fault.in > 1) {
    world.calls.push(name);
    return work();
  }
  world.faults.shift();
  if (fault.in === 1) {
    world.calls.push(name);
    work();
  }
  throw new Crash(name);
};

const edit = (world: World, change: (proxy: ProxyObject) => ProxyObject): void => {
  if (!world.proxy) return;
  const changed = change(world.proxy);
  world.proxy = {
    ...changed,
    metadata: { ...changed.metadata, resourceVersion: String(next(world) + 1000) },
  };
};

export const editSpec = (world: World, change: (spec: Spec) => Spec): void =>
  edit(world, (proxy) => ({
    ...proxy,
    spec: change(proxy.spec),
    metadata: { ...proxy.metadata, generation: proxy.metadata.generation + 1 },
  }));

export const deleteProxy = (world: World): void => {
  if (!world.proxy || world.proxy.metadata.deletionTimestamp !== undefined) return;
  if ((world.proxy.metadata.finalizers ?? []).length === 0) {
    world.proxy = undefined;
    return;
  }
  edit(world, (proxy) => ({
    ...proxy,
    metadata: {
      ...proxy.metadata,
      generation: proxy.metadata.generation + 1,
      deletionTimestamp: '2026-11-30T12:30:00Z',
    },
  }));
};

const current = (world: World, seen: ProxyObject): ProxyObject => {
  if (!world.proxy) throw new SystemError('NotFound', 'no such Proxy');
  if (world.proxy.metadata.resourceVersion !== seen.metadata.resourceVersion)
    throw new SystemError('Conflict', 'the Proxy has changed');
  return world.proxy;
};

const fakeCluster = (world: World): Parts['cluster'] => ({
  getProxy: async () => world.proxy,
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

const versionOf = (version: number) => ({ updateTime: Timestamp.fromMillis(version) });

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

const fakeRecords = (world: World): Parts['records'] => ({
  read: async () =>
    world.record && {
      record: structuredClone(world.record.value),
      version: versionOf(world.record.version),
      readTime: world.now,
    },
  create: (record) =>
    effect(world, 'createRecord', () => {
      if (world.record) throw new SystemError('Conflict', 'the record exists');
      checkPublished(world, record);
      world.record = { value: structuredClone(record), version: next(world) };
      return versionOf(world.record.version);
    }),
  write: (record, version) =>
    effect(world, 'writeRecord', () => {
      if (world.record?.version !== version.updateTime.toMillis())
        throw new SystemError('Conflict', 'the record has changed');
      checkPublished(world, record);
      world.record = { value: structuredClone(record), version: next(world) };
      return versionOf(world.record.version);
    }),
});

const takeFault = <K extends Fault['kind']>(
  world: World,
  kind: K,
): Extract<Fault, { kind: K }> | undefined => {
  const index = world.faults.findIndex((fault) => fault.kind === kind);
  if (index === -1) return undefined;
  const [fault] = world.faults.splice(index, 1);
  return fault as Extract<Fault, { kind: K }> | undefined;
};

const begin = (world: World, zone: string, finish: () => OperationResult) => {
  const name = `op-${next(world)}`;
  world.running.set(name, { due: world.now + OPERATION_MS, finish });
  return { zone, name };
};

const insert = (world: World, spec: MachineSpec, zone: string) => {
  const key = `${zone}/${spec.name}`;
  if (world.machines.has(key)) throw new SystemError('Conflict', 'the name exists');
  const refused = takeFault(world, 'refuse');
  if (refused) throw new SystemError(refused.code, 'refused');
  const failed = takeFault(world, 'failOperation');
  const id = next(world);
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
  if (world.record && publications(world.record.value).some((each) => each.machine === machine.name))
    world.violations.push(`deleted ${machine.name} while it was published`);
  if (real.state === 'stopping') world.violations.push(`deleted ${machine.name} twice`);
  const { address: _gone, ...rest } = real;
  world.machines.set(key, { ...rest, state: 'stopping' });
  return begin(world, machine.zone, () => {
    world.machines.delete(key);
    return { kind: 'succeeded' };
  });
};

const restart = (world: World, machine: Machine) =>
  begin(world, machine.zone, () => {
    const key = `${machine.zone}/${machine.name}`;
    const real = world.machines.get(key);
    if (real?.state === 'stopped')
      world.machines.set(key, { ...real, state: 'running', address: `203.0.113.${next(world) % 250}` });
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

const fakeProvider = (world: World): MachineProvider => ({
  name: 'gcp',
  get: async (name, zone) => {
    world.calls.push('get');
    advance(world);
    return world.machines.get(`${zone}/${name}`);
  },
  create: (spec, zone) => effect(world, 'create', () => insert(world, spec, zone)),
  delete: (machine) => effect(world, 'delete', () => remove(world, machine)),
  start: (machine) => effect(world, 'start', () => restart(world, machine)),
  wait: async (operation) => awaitOperation(world, operation.name),
  list: async () => ({ machines: [...world.machines.values()], unknownZones: [], partial: false }),
  close: async () => undefined,
});

export const partsOf = (world: World): Parts => ({
  cluster: fakeCluster(world),
  records: fakeRecords(world),
  leaseCounts: async () =>
    Object.fromEntries(
      [...world.leases]
        .filter(([, expiry]) => expiry > world.now)
        .map(([id, lastExpiry]) => [id, { count: 1, lastExpiry }]),
    ),
  credentials: {
    create: (id, value) =>
      effect(world, 'storeCredentials', () => {
        world.credentials.set(id, value);
      }),
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
    token: () => `t${next(world)}`,
    uuid: () => `u${next(world)}`,
    fraction: () => 0.5,
  },
  log: makeLog(() => undefined),
});

/** What health does: every published endpoint gets this verdict. */
export const judge = (world: World, state: 'Healthy' | 'Unhealthy'): void => {
  if (!world.record) return;
  const verdict = { state, since: world.now, checkedAt: world.now };
  const { serving, candidate, draining, ...rest } = world.record.value;
  world.record = {
    version: next(world),
    value: {
      ...rest,
      ...(serving ? { serving: { ...serving, verdict } } : {}),
      ...(candidate ? { candidate: { ...candidate, verdict } } : {}),
      draining: draining.map((each) => ({ ...each, verdict })),
    },
  };
};
