/** A world that gc can act on: what it holds changes with every call, and each part can be made to fail. */

import { Timestamp } from '@google-cloud/firestore';

import type { Dependencies } from '../../../functions/gc/handler.ts';
import { makeHandler } from '../../../functions/gc/handler.ts';
import { SystemError } from '#shared/app/errors.ts';
import type { HttpReply } from '#shared/app/http.ts';
import { makeLog } from '#shared/app/log.ts';
import { noMetrics } from '#shared/app/metrics.ts';
import type { Leftover, Machine, MachineProvider } from '#shared/domain/machine.ts';
import type { ChangeMessage } from '#shared/domain/message.ts';
import type { ProxyRecord } from '#shared/domain/record.ts';
import type { ProxyObject } from '#shared/kubernetes/cluster.ts';

import { INSTALLATION, LIMITS, NOW } from './builders.ts';

export type Part =
  | 'machines'
  | 'get'
  | 'delete'
  | 'leftovers'
  | 'deleteLeftover'
  | 'proxies'
  | 'getProxy'
  | 'publish'
  | 'lock';

export interface World {
  now: number;
  /** `zone/name` → machine. */
  readonly machines: Map<string, Machine>;
  /** The same for what machines left behind. */
  readonly leftovers: Map<string, Leftover>;
  /** How often somebody asked for all of them. */
  leftoverLists: number;
  /** A machine that goes leaves something behind. */
  leavesBehind: boolean;
  readonly proxies: ProxyObject[];
  /** UIDs that a stale list lacks, while a single read shows them. */
  readonly hiddenFromList: Set<string>;
  readonly records: Map<string, ProxyRecord>;
  /** UIDs that the index of records lacks, while a single read shows them. */
  readonly hiddenFromIndex: Set<string>;
  readonly sightings: Map<string, number>;
  clusterId: string;
  rememberedCluster: string | undefined;
  lockHolder: string | undefined;
  readonly unknownZones: string[];
  /** A delete call is accepted, and nothing of it is to be seen yet. */
  slowDeletes: boolean;
  /** Parts that fail until they are taken out. */
  readonly broken: Set<Part>;
  readonly published: ChangeMessage[];
  /** The ordering key of each of them; undefined = the Proxy's own. */
  readonly publishedUnder: (string | undefined)[];
  readonly deleted: string[];
  readonly swept: string[];
  /** UIDs that the index of records was told to leave out. */
  readonly leftOut: string[];
  /** Names of every call that would change something. */
  readonly writes: string[];
  readonly metrics: { readonly name: string; readonly labels: Readonly<Record<string, string>> }[];
  readonly logLines: string[];
  /** Runs once, right before the next live read of a machine. */
  beforeGet: (() => void) | undefined;
  /** Runs right after each live read of a leftover. */
  afterLook: (() => void) | undefined;
}

export const aWorld = (machines: readonly Machine[] = []): World => ({
  now: NOW,
  machines: new Map(machines.map((machine) => [`${machine.zone}/${machine.name}`, machine])),
  leftovers: new Map(),
  leftoverLists: 0,
  leavesBehind: false,
  proxies: [],
  hiddenFromList: new Set(),
  records: new Map(),
  hiddenFromIndex: new Set(),
  sightings: new Map(),
  clusterId: 'cluster-1',
  rememberedCluster: 'cluster-1',
  lockHolder: undefined,
  unknownZones: [],
  slowDeletes: false,
  broken: new Set(),
  published: [],
  publishedUnder: [],
  deleted: [],
  swept: [],
  leftOut: [],
  writes: [],
  metrics: [],
  logLines: [],
  beforeGet: undefined,
  afterLook: undefined,
});

const guard = (world: World, part: Part): void => {
  if (world.broken.has(part)) throw new SystemError('Transient', `${part} is broken`);
};

const unused = (): never => {
  throw new Error('gc never calls this');
};

const provider = (world: World): MachineProvider => ({
  name: 'gcp',
  get: async (name, zone) => {
    world.beforeGet?.();
    world.beforeGet = undefined;
    guard(world, 'get');
    return world.machines.get(`${zone}/${name}`);
  },
  delete: async ({ name, zone, instanceId, installation = '', uid = '', createdAt = 0 }) => {
    guard(world, 'delete');
    world.writes.push('delete');
    world.deleted.push(name);
    if (!world.slowDeletes) world.machines.delete(`${zone}/${name}`);
    const left = { name, zone, id: `disk-of-${instanceId}`, installation, uid, createdAt };
    if (world.leavesBehind) world.leftovers.set(`${zone}/${name}`, left);
    return { zone, name: 'operation' };
  },
  list: async () => {
    guard(world, 'machines');
    return {
      machines: [...world.machines.values()],
      unknownZones: world.unknownZones,
      partial: false,
    };
  },
  listLeftovers: async () => {
    world.leftoverLists += 1;
    guard(world, 'leftovers');
    return { leftovers: [...world.leftovers.values()], unknownZones: world.unknownZones, partial: false };
  },
  leftover: async (name, zone) => {
    const shown = world.leftovers.get(`${zone}/${name}`);
    world.afterLook?.();
    return shown;
  },
  deleteLeftover: async ({ name, zone, id }) => {
    guard(world, 'deleteLeftover');
    if (world.leftovers.get(`${zone}/${name}`)?.id !== id) return undefined;
    world.writes.push('deleteLeftover');
    world.leftovers.delete(`${zone}/${name}`);
    return { zone, name: 'operation' };
  },
  create: unused,
  start: unused,
  wait: unused,
  close: async () => undefined,
});

const UPDATED_AT = NOW - 24 * LIMITS.tombstoneAgeMs;

const stored = (record: ProxyRecord) => ({
  record,
  version: { updateTime: Timestamp.fromMillis(UPDATED_AT) },
  readTime: NOW,
});

const fleetOf = (world: World): Dependencies['fleet'] => ({
  read: async () => ({
    records: [...world.records.values()]
      .filter(({ ref }) => !world.hiddenFromIndex.has(ref.uid))
      .map((record) => ({ record, updatedAt: UPDATED_AT })),
    unreadable: [],
    readTime: NOW,
    basis: { scannedAt: NOW, indexedAt: NOW, changes: 0, documents: new Map() },
  }),
  save: async (_, removed) => {
    if (removed.length > 0) world.writes.push('index');
    world.leftOut.push(...removed);
  },
});

const cluster = (world: World): Dependencies['cluster'] => ({
  listProxies: async () => {
    guard(world, 'proxies');
    return world.proxies.filter(({ metadata }) => !world.hiddenFromList.has(metadata.uid));
  },
  getProxy: async ({ namespace, name }) => {
    guard(world, 'getProxy');
    return world.proxies.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name);
  },
  clusterId: async () => world.clusterId,
});

const stores = (
  world: World,
): Pick<Dependencies, 'fleet' | 'records' | 'sightings' | 'installations' | 'sweep'> => ({
  fleet: fleetOf(world),
  records: {
    read: async (uid) => {
      const record = world.records.get(uid);
      return record && stored(record);
    },
  },
  sightings: {
    all: async () => new Map(world.sightings),
    add: async (keys, now) => {
      if (keys.length > 0) world.writes.push('sightings.add');
      for (const key of keys) if (!world.sightings.has(key)) world.sightings.set(key, now);
    },
    remove: async (keys) => {
      if (keys.length > 0) world.writes.push('sightings.remove');
      for (const key of keys) world.sightings.delete(key);
    },
  },
  installations: {
    cluster: async () => world.rememberedCluster,
    remember: async (id) => {
      world.writes.push('remember');
      world.rememberedCluster ??= id;
    },
  },
  sweep: async (tombstones) => {
    const uids = tombstones.map(({ uid }) => uid);
    if (uids.length > 0) world.writes.push('sweep');
    world.swept.push(...uids);
    for (const uid of uids) world.records.delete(uid);
    return uids;
  },
});

const dependencies = (world: World): Dependencies => {
  let serial = 0;
  return {
    installation: INSTALLATION,
    namespaces: ['*'],
    limits: LIMITS,
    providers: [provider(world)],
    cluster: cluster(world),
    ...stores(world),
    publisher: {
      change: async (message, key) => {
        guard(world, 'publish');
        world.writes.push('publish');
        world.published.push(message);
        world.publishedUnder.push(key);
      },
    },
    lock: async (holder) => {
      guard(world, 'lock');
      if (world.lockHolder !== undefined) return undefined;
      world.writes.push('lock');
      world.lockHolder = holder;
      return {
        release: async () => {
          world.lockHolder = undefined;
        },
      };
    },
    clock: { now: () => world.now, monotonic: () => world.now },
    ids: { token: () => `run-${(serial += 1)}`, uuid: () => 'uuid', fraction: () => 0.5 },
    log: makeLog((line) => world.logLines.push(line)),
    metrics: { ...noMetrics, count: (name, labels = {}) => world.metrics.push({ name, labels }) },
  };
};

/** Sends one request to gc in this world. */
export const call = (world: World, query = '', method = 'POST', path = '/'): Promise<HttpReply> =>
  makeHandler(dependencies(world))({
    method,
    path,
    query: new URLSearchParams(query),
    headers: {},
    body: new Uint8Array(),
  });
