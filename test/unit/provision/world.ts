/** A world for provision: a cluster, a store and a cloud with memory, in which every call can fail, crash or lose its answer. */

import type { ErrorCode } from '#shared/app/errors.ts';
import type { Leftover, Machine, OperationResult } from '#shared/domain/machine.ts';
import type { ProxyRef } from '#shared/domain/proxy.ts';
import type { ProxyRecord } from '#shared/domain/record.ts';
import type { Queue } from '#shared/firestore/replacements.ts';
import type { ProxyObject, SecretReading } from '#shared/kubernetes/cluster.ts';

export const UID = '12345678-1234-4123-8123-123456789abc';
export const REF: ProxyRef = { namespace: 'crawlers', name: 'p1', uid: UID };
export const START = Date.parse('2026-11-30T12:00:00Z');

/** The process died here. */
export class Crash extends Error {}

export type Fault =
  | { readonly kind: 'crash'; readonly in: number }
  | { readonly kind: 'lostAnswer' }
  /** The next machine that goes leaves its disk there. */
  | { readonly kind: 'keptDisk' }
  | { readonly kind: 'refuse'; readonly code: ErrorCode }
  | { readonly kind: 'failOperation'; readonly code: 'CapacityUnavailable' | 'QuotaExceeded' | 'Transient' };

/** How long the cloud takes for anything. */
export const OPERATION_MS = 20_000;

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
  /** Of the cluster that answers. */
  clusterId: string;
  readonly secrets: Map<string, SecretReading>;
  /** `at`: when it was written. */
  record: { value: ProxyRecord; version: number; at: number } | undefined;
  /** Whether there is a lease document, which outlives a record that is lost. */
  gate: boolean;
  readonly credentials: Map<string, unknown>;
  /** Endpoint id → expiry of its only lease. */
  readonly leases: Map<string, number>;
  /** `zone/name` → machine. */
  readonly machines: Map<string, Machine>;
  /** `zone/name` → what its machine leaves behind. */
  readonly disks: Map<string, Leftover>;
  readonly running: Map<string, Running>;
  readonly results: Map<string, OperationResult>;
  readonly faults: Fault[];
  readonly calls: string[];
  readonly probes: number[];
  /** Who else wants another machine. */
  queue: Queue;
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
  clusterId: 'cluster-1',
  secrets: new Map(),
  record: undefined,
  gate: false,
  credentials: new Map(),
  leases: new Map(),
  machines: new Map(),
  disks: new Map(),
  running: new Map(),
  results: new Map(),
  faults: [],
  calls: [],
  probes: [],
  queue: { ahead: 0, stuck: 0, fleet: 4 },
  violations: [],
  counter: 0,
});

export const nextNumber = (world: World): number => (world.counter += 1);

export const storeRecord = (world: World, value: ProxyRecord): NonNullable<World['record']> =>
  (world.record = { value: structuredClone(value), version: nextNumber(world), at: world.now });

/** Every effect goes through here: it is logged, and a scripted crash ends it before or after it has happened. */
export const effect = async <T>(world: World, name: string, work: () => T): Promise<T> => {
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

export const edit = (world: World, change: (proxy: ProxyObject) => ProxyObject): void => {
  if (!world.proxy) return;
  const changed = change(world.proxy);
  world.proxy = {
    ...changed,
    metadata: { ...changed.metadata, resourceVersion: String(nextNumber(world) + 1000) },
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
