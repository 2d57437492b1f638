/** What the stand-in remembers: instances, disks, operations, and the requests that made them. */

import { createHash, randomBytes } from 'node:crypto';

import type { Log } from '#shared/app/log.ts';

import type { AddressAllocator } from './addresses.ts';
import type { OperationError } from './errors.ts';
import { makeFaultTable, type FaultTable } from './faults.ts';
import type { ForwardProxy } from './forward-proxy.ts';
import type { InstanceBody, Labels } from './instance-body.ts';
import { makeTimers, type Timers } from './timers.ts';

export type InstanceStatus = 'PROVISIONING' | 'STAGING' | 'RUNNING' | 'STOPPING' | 'TERMINATED';

export interface Instance {
  readonly id: string;
  readonly name: string;
  readonly zone: string;
  readonly body: InstanceBody;
  readonly createdAt: number;
  status: InstanceStatus;
  statusMessage: string | undefined;
  labels: Labels;
  metadata: InstanceBody['metadata']['items'];
  networkIP: string | undefined;
  natIP: string | undefined;
  proxy: ForwardProxy | undefined;
  /** Grows with every boot and every end, so that a late timer of an earlier life does nothing. */
  life: number;
}

export interface Disk {
  readonly id: string;
  readonly name: string;
  readonly zone: string;
  readonly sourceImage: string;
  readonly labels: Labels;
  readonly createdAt: number;
  user: string | undefined;
}

export interface Operation {
  readonly id: string;
  readonly name: string;
  readonly zone: string;
  readonly type: string;
  readonly target: string;
  readonly targetId: string;
  readonly requestId: string | undefined;
  readonly insertTime: number;
  startTime: number | undefined;
  endTime: number | undefined;
  status: 'PENDING' | 'RUNNING' | 'DONE';
  error: OperationError | undefined;
  /** Called when the operation is done. */
  readonly waiters: Set<() => void>;
}

export interface World {
  readonly projectId: string;
  readonly zones: readonly string[];
  /** How long operations take, and how long a machine's port needs after RUNNING; milliseconds. */
  readonly operationMs: number;
  readonly bootMs: number;
  /** Items on a page at most, even when more are asked for. */
  readonly longestPage: number;
  readonly addresses: AddressAllocator;
  readonly log: Log;
  readonly timers: Timers;
  readonly faults: FaultTable;
  /** By `zone/name`. */
  readonly instances: Map<string, Instance>;
  readonly disks: Map<string, Disk>;
  readonly operations: Map<string, Operation>;
  /** Names of operations by request id. */
  readonly requests: Map<string, string>;
  /** Work that outlives its timer, such as closing a port; `stop` waits for it. */
  readonly background: Set<Promise<void>>;
  now(): number;
  /** A number beyond 2^53, in decimal digits. */
  nextId(): string;
}

export interface WorldOptions {
  readonly projectId: string;
  readonly zones: readonly string[];
  readonly operationMs: number;
  readonly bootMs: number;
  /** Items on a page at most, even when more are asked for. */
  readonly longestPage: number;
  readonly addresses: AddressAllocator;
  readonly log: Log;
}

export const makeWorld = (options: WorldOptions): World => {
  let lastId = BigInt(Date.now()) * 3_000_000n;
  return {
    ...options,
    timers: makeTimers(),
    faults: makeFaultTable(),
    instances: new Map(),
    disks: new Map(),
    operations: new Map(),
    requests: new Map(),
    background: new Set(),
    now: () => Date.now(),
    nextId: () => {
      lastId += 7n;
      return lastId.toString();
    },
  };
};

/** Runs `work` beside everything else; a failure is logged. */
export const inBackground = (world: World, what: string, work: Promise<void>): void => {
  const guarded = work
    .catch((error: unknown) => world.log.error(`${what} failed`, error))
    .finally(() => world.background.delete(guarded));
  world.background.add(guarded);
};

export const keyOf = (zone: string, name: string): string => `${zone}/${name}`;

/** `projects/p/zones/z/<collection>/<name>`, as messages and self links have it. */
export const pathOf = (world: World, zone: string, collection: string, name: string): string =>
  `projects/${world.projectId}/zones/${zone}/${collection}/${name}`;

export const fingerprintOf = (value: unknown): string =>
  createHash('sha1').update(JSON.stringify(value)).digest('base64').slice(0, 11).concat('=');

export const randomHex = (bytes: number): string => randomBytes(bytes).toString('hex');
