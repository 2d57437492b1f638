/** gc itself, over the shared world: every call may fail, and every deletion is entered into the ledger. */

import { Timestamp } from '@google-cloud/firestore';

import { makeHandler, type Dependencies } from '../../../../functions/gc/handler.ts';
import { SystemError } from '#shared/app/errors.ts';
import type { HttpReply } from '#shared/app/http.ts';
import { makeLog } from '#shared/app/log.ts';
import { noMetrics } from '#shared/app/metrics.ts';
import type { Leftover, Machine, MachineProvider } from '#shared/domain/machine.ts';
import { labelsHash } from '#shared/domain/observed.ts';
import type { ProxyObject } from '#shared/kubernetes/cluster.ts';

import {
  LIMITS,
  MAX_SKEW_MS,
  beginDelete,
  fails,
  happens,
  visibleMachines,
  type Proxy,
  type SoakWorld,
} from './world.ts';

const mayFail = (world: SoakWorld, what: string): void => {
  if (fails(world)) throw new SystemError('Transient', `${what} failed`);
};

const unused = (): never => {
  throw new Error('gc never calls this');
};

const OF_PROVISION = {
  create: unused,
  start: unused,
  wait: unused,
};

/** What gc must never do. The ledger goes by the true time and by what is there now. */
const judge = (world: SoakWorld, installation: string, target: Machine | Leftover): string | undefined => {
  if (target.installation !== installation) return 'of another installation';
  if (world.proxies.has(target.uid ?? '')) return 'of a living Proxy';
  if (world.now - (target.createdAt ?? 0) < LIMITS.minAgeMs - MAX_SKEW_MS) return 'too young';
  return undefined;
};

const listOf = (world: SoakWorld): Awaited<ReturnType<MachineProvider['list']>> => {
  const unknownZones = [...world.unreachable];
  const partial = fails(world);
  const seen = visibleMachines(world).filter(({ zone }) => !world.unreachable.has(zone));
  return { machines: partial ? seen.filter(() => happens(world, 0.5)) : seen, unknownZones, partial };
};

const providerOf = (world: SoakWorld, installation: string): MachineProvider => ({
  name: 'gcp',
  // Other installations' machines are shown too, as if the filter had been ignored.
  list: async () => {
    mayFail(world, 'list');
    return listOf(world);
  },
  get: async (name, zone) => {
    mayFail(world, 'get');
    return visibleMachines(world).find((machine) => machine.name === name && machine.zone === zone);
  },
  delete: async (target) => {
    mayFail(world, 'delete');
    const entry = world.cloud.get(target.instanceId);
    if (!entry) throw new SystemError('NotFound', 'no such machine');
    const wrong = judge(world, installation, entry.machine);
    if (wrong) world.wrong.push(`${installation} deleted ${target.name}: ${wrong}`);
    beginDelete(world, entry);
    world.done.deletedByGc += 1;
    return { zone: target.zone, name: 'operation' };
  },
  listLeftovers: async () => {
    mayFail(world, 'list of leftovers');
    const all = [...world.leftovers.values()].filter(({ zone }) => !world.unreachable.has(zone));
    return { leftovers: all, unknownZones: [...world.unreachable], partial: false };
  },
  leftover: async (name, zone) => {
    mayFail(world, 'get of a leftover');
    return [...world.leftovers.values()].find((one) => one.name === name && one.zone === zone);
  },
  deleteLeftover: async (target) => {
    mayFail(world, 'delete of a leftover');
    const wrong = judge(world, installation, target);
    if (wrong) world.wrong.push(`${installation} deleted the leftover of ${target.name}: ${wrong}`);
    world.done.leftoversDeleted += world.leftovers.delete(target.id) ? 1 : 0;
    return { zone: target.zone, name: 'operation' };
  },
  ...OF_PROVISION,
  close: async () => undefined,
});

const objectOf = ({ uid, namespace, name, owner, generation, observed, deleting }: Proxy): ProxyObject => ({
  apiVersion: 'crawl.example.com/v1alpha1',
  kind: 'Proxy',
  metadata: {
    namespace,
    name,
    uid,
    generation,
    resourceVersion: '1',
    creationTimestamp: '2026-11-01T00:00:00Z',
    ...(deleting ? { deletionTimestamp: '2026-11-01T00:00:00Z' } : {}),
  },
  spec: {},
  status: {
    installation: owner,
    observed: { generation: observed, labelsHash: labelsHash({}), secretVersions: {} },
  },
});

const clusterOf = (world: SoakWorld, installation: string): Dependencies['cluster'] => ({
  listProxies: async () => {
    mayFail(world, 'list of Proxies');
    const own = [...world.proxies.values()].filter(({ namespace }) => namespace === `of-${installation}`);
    // A stale list lacks some; that they are there a live read still says.
    const isStale = fails(world);
    return own
      .filter(({ uid }) => !isStale || !world.records.has(uid) || happens(world, 0.7))
      .map((proxy) => objectOf(proxy));
  },
  getProxy: async ({ namespace, name }) => {
    mayFail(world, 'get of a Proxy');
    const found = [...world.proxies.values()].find(
      (proxy) => proxy.namespace === namespace && proxy.name === name,
    );
    return found && objectOf(found);
  },
  clusterId: async () => 'cluster-1',
});

const storesOf = (
  world: SoakWorld,
  installation: string,
): Pick<Dependencies, 'fleet' | 'records' | 'sightings' | 'installations' | 'sweep'> => {
  const own = world.sightings.get(installation) ?? new Map<string, number>();
  world.sightings.set(installation, own);
  return {
    fleet: {
      read: async () => {
        mayFail(world, 'read of the index');
        return {
          records: [...world.records.values()].filter(({ record }) => record.installation === installation),
          unreadable: [],
          readTime: world.now,
          basis: { scannedAt: world.now, indexedAt: world.now, changes: 0, documents: new Map() },
        };
      },
      save: async () => undefined,
    },
    records: {
      read: async (uid) => {
        mayFail(world, 'read of a record');
        const found = world.records.get(uid);
        const version = { updateTime: Timestamp.fromMillis(found?.updatedAt ?? 0) };
        return found && { record: found.record, version, readTime: world.now };
      },
    },
    sightings: {
      all: async () => {
        mayFail(world, 'read of sightings');
        return new Map(own);
      },
      add: async (keys, now) => {
        mayFail(world, 'write of sightings');
        for (const key of keys) if (!own.has(key)) own.set(key, now);
      },
      remove: async (keys) => {
        mayFail(world, 'removal of sightings');
        for (const key of keys) own.delete(key);
      },
    },
    installations: { cluster: async () => 'cluster-1', remember: async () => undefined },
    sweep: async (tombstones) => {
      mayFail(world, 'sweep');
      const swept = tombstones.filter(
        ({ uid, updatedAt }) => world.records.get(uid)?.updatedAt === updatedAt,
      );
      for (const { uid } of swept) world.records.delete(uid);
      return swept.map(({ uid }) => uid);
    },
  };
};

/** One run of an installation's gc, its clock off by up to `MAX_SKEW_MS`. A run that finds no database answers 500. */
export const runGc = async (
  world: SoakWorld,
  installation: string,
  nudged: (uid: string) => void,
  query = '',
): Promise<HttpReply> => {
  const skew = fails(world) ? (world.random() * 2 - 1) * MAX_SKEW_MS : 0;
  const clock = { now: () => world.now + skew, monotonic: () => world.now };
  const handler = makeHandler({
    ...storesOf(world, installation),
    installation,
    namespaces: [`of-${installation}`],
    limits: LIMITS,
    providers: [providerOf(world, installation)],
    cluster: clusterOf(world, installation),
    publisher: {
      change: async ({ uid }) => {
        mayFail(world, 'publish');
        nudged(uid);
      },
    },
    lock: async () => (fails(world) ? undefined : { release: async () => mayFail(world, 'release') }),
    clock,
    ids: { token: () => 'run', uuid: () => 'uuid', fraction: () => 0.5 },
    log: makeLog(() => undefined),
    metrics: noMetrics,
  });
  const request = {
    method: 'POST',
    path: '/',
    query: new URLSearchParams(query),
    headers: {},
    body: new Uint8Array(),
  };
  try {
    return await handler(request);
  } catch (error) {
    return { status: 500, body: { detail: String(error) } };
  }
};
