/** A converged fleet: machines in a cloud, their records in Firestore, their Proxies in a list; and gc over it. */

import { randomUUID } from 'node:crypto';

import { systemClock } from '#shared/app/clock.ts';
import type { HttpReply } from '#shared/app/http.ts';
import { systemIds } from '#shared/app/ids.ts';
import { makeLog } from '#shared/app/log.ts';
import { noMetrics } from '#shared/app/metrics.ts';
import { pause, retry } from '#shared/app/wait.ts';
import { openComputeProvider } from '#shared/compute/provider.ts';
import { machineName } from '#shared/domain/names.ts';
import { labelsHash } from '#shared/domain/observed.ts';
import type { ProxyRecord } from '#shared/domain/record.ts';
import { closeFirestore, openFirestore } from '#shared/firestore/client.ts';
import { INDEX_LIMITS } from '#shared/firestore/fleet-index.ts';
import { recordStore } from '#shared/firestore/records.ts';
import type { ProxyObject } from '#shared/kubernetes/cluster.ts';

import { makeHandler } from '../../../functions/gc/handler.ts';
import { storesOn } from '../../../functions/gc/wiring.ts';
import { createSurely, eachOf, proxyRecord, startWorld } from '../leases/world.ts';
import { heapInUse } from '../heap.ts';
import { DISKS, startCloud, type Listed } from './cloud.ts';
import { billReads } from './reads.ts';

const INSTALLATION = 'bench';
const ZONES = ['europe-west1-b', 'europe-west1-c', 'europe-west1-d'] as const;
const HASH = 'abcdef0123';

interface One {
  readonly machine: Listed;
  readonly record: ProxyRecord;
  readonly proxy: ProxyObject;
}

const machineOf = (index: number, uid: string): Listed => ({
  name: machineName(INSTALLATION, uid, HASH, 1),
  zone: ZONES[index % ZONES.length] ?? ZONES[0],
  id: String(
    4_000_000_000_000_000_000n + ((BigInt(index) * 0x9e37_79b9_7f4a_7c15n) % 1_000_000_000_000_000_000n),
  ),
  address: `34.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`,
  uid,
  installation: INSTALLATION,
});

const oneOf = (index: number): One => {
  const uid = randomUUID();
  const machine = machineOf(index, uid);
  const base = proxyRecord(index, 5);
  const ref = { ...base.ref, uid };
  const { name, zone, id: instanceId, address: host } = machine;
  return {
    machine,
    record: {
      ...base,
      ref,
      serving: {
        endpoint: {
          id: systemIds.token(),
          host,
          port: 3128,
          scheme: 'http',
          instanceId,
          credentialsVersion: '',
        },
        verdict: { state: 'Healthy', since: systemClock.now(), checkedAt: systemClock.now(), outcome: 'Ok' },
        publishedAt: systemClock.now(),
        machine: name,
        zone,
        providerID: `gce://bench/${zone}/${name}`,
        ownExit: true,
      },
      machines: [{ name, hash: HASH, incarnation: 1, zones: [zone], instanceId }],
    },
    proxy: {
      apiVersion: 'crawl.example.com/v1alpha1',
      kind: 'Proxy',
      metadata: {
        ...ref,
        generation: 1,
        resourceVersion: '1',
        creationTimestamp: '2026-01-01T00:00:00Z',
        labels: { ...base.labels },
      },
      spec: {},
      status: {
        installation: INSTALLATION,
        observed: { generation: 1, labelsHash: labelsHash(base.labels), secretVersions: {} },
      },
    },
  };
};

export interface GcCounts {
  /** Of machines. */
  readonly lists: number;
  /** Of boot disks, which most runs do not look at. */
  readonly diskLists: number;
  readonly reads: number;
  readonly writes: number;
  readonly nudges: number;
}

export interface GcWorld {
  /** One run, whose writes are counted. */
  run(): Promise<HttpReply>;
  /** One run and nothing else: whatever it leaves behind is its own. */
  bareRun(): Promise<HttpReply>;
  /** A dry run, which looks at everything. */
  dryRun(): Promise<HttpReply>;
  /** For a gc in a process of its own. */
  readonly parts: {
    readonly projectId: string;
    readonly installation: string;
    readonly cloudUrl: string;
    readonly proxies: readonly ProxyObject[];
  };
  /** Bytes of the process before the first run: the fleet, and this bench. */
  readonly rssBefore: number;
  count(): GcCounts;
  /** Makes this many records due. */
  change(count: number): Promise<void>;
  stop(): Promise<void>;
}

/** Longer than the index looks back: what is measured is what it holds. */
const SETTLE_MS = INDEX_LIMITS.marginMs + 2000;

const seed = async (projectId: string, fleet: readonly One[]): Promise<void> => {
  const db = openFirestore({ projectId });
  const records = recordStore(db);
  await eachOf(fleet.length, 64, async (index) => {
    const one = fleet[index];
    if (one) await createSurely(records, one.record);
  });
  await closeFirestore(db);
};

/** Versions of everything that this project has, by path. */
const versions = async (projectId: string): Promise<ReadonlyMap<string, string>> => {
  const db = openFirestore({ projectId });
  const collections = (await db.listCollections()).filter(({ id }) => id !== 'proxies' && id !== 'leases');
  const snapshots = await Promise.all(collections.map((collection) => collection.select().get()));
  await closeFirestore(db);
  return new Map(
    snapshots.flatMap(({ docs }) => docs.map((doc) => [doc.ref.path, doc.updateTime.valueOf()] as const)),
  );
};

const sum = (calls: readonly (readonly [string, number])[]): number =>
  calls.reduce((total, [, count]) => total + count, 0);

const listsOf = (calls: ReadonlyMap<string, number>): Pick<GcCounts, 'lists' | 'diskLists'> => {
  const diskLists = sum([...calls].filter(([path]) => path.endsWith(DISKS)));
  return { lists: sum([...calls]) - diskLists, diskLists };
};

export const startGcWorld = async (objects: number, say: (line: string) => void): Promise<GcWorld> => {
  const world = await startWorld();
  const projectId = `b${systemIds.token().slice(0, 12)}`;
  const fleet = Array.from({ length: objects }, (_, index) => oneOf(index));
  const cloud = await startCloud(fleet.map(({ machine }) => machine));
  say(`  ${objects} records are written`);
  await seed(projectId, fleet);
  const db = openFirestore({ projectId });
  const bill = billReads(db);
  const stores = storesOn(db, INSTALLATION);
  const tools = { clock: systemClock, ids: systemIds, log: makeLog(() => undefined), metrics: noMetrics };
  const provider = openComputeProvider({
    ...tools,
    projectId: 'bench',
    installation: INSTALLATION,
    endpoint: cloud.url,
  });
  let nudges = 0;
  let writes = 0;
  const handler = makeHandler({
    ...tools,
    ...stores,
    installation: INSTALLATION,
    namespaces: ['*'],
    limits: {
      minAgeMs: 600_000,
      sightingGapMs: 120_000,
      maxDeletions: 10,
      maxNudges: 5000,
      tombstoneAgeMs: 3_600_000,
    },
    providers: [provider],
    cluster: {
      // As from the wire: objects of their own, each time.
      listProxies: () => Promise.resolve(structuredClone(fleet.map(({ proxy }) => proxy))),
      getProxy: () => Promise.resolve(undefined),
      clusterId: () => Promise.resolve('cluster-1'),
    },
    publisher: {
      change: () => {
        nudges += 1;
        return Promise.resolve();
      },
    },
  });
  const request = {
    method: 'POST',
    path: '/',
    query: new URLSearchParams(),
    headers: {},
    body: new Uint8Array(),
  };
  const runOnce = async (): Promise<HttpReply> => {
    const before = await versions(projectId);
    const reply = await handler(request);
    const after = await versions(projectId);
    const paths = new Set([...before.keys(), ...after.keys()]);
    writes += [...paths].filter((path) => before.get(path) !== after.get(path)).length;
    return reply;
  };
  heapInUse();
  const rssBefore = process.memoryUsage.rss();
  say('  the first run, which reads every record, and the time that the index looks back');
  // A busy machine's emulator may take longer for ten thousand documents than a call may.
  await retry(runOnce, { attempts: 8, baseMs: 500, capMs: 5000, ids: systemIds });
  await pause(SETTLE_MS);
  // This one finds the index older than what it has to look back for, and writes it anew if it must.
  await runOnce();
  return {
    run: runOnce,
    parts: {
      projectId,
      installation: INSTALLATION,
      cloudUrl: cloud.url,
      proxies: fleet.map(({ proxy }) => proxy),
    },
    bareRun: () => handler(request),
    dryRun: () => handler({ ...request, query: new URLSearchParams('dryRun=true') }),
    rssBefore,
    count: () => ({
      ...listsOf(cloud.calls()),
      reads: bill.reads,
      writes,
      nudges,
    }),
    async change(count) {
      const own = openFirestore({ projectId });
      const records = recordStore(own);
      for (const { record } of fleet.slice(0, count)) {
        const stored = await records.read(record.ref.uid);
        if (stored)
          await records.write({ ...stored.record, wakeAt: systemClock.now() - 1000 }, stored.version);
      }
      await closeFirestore(own);
    },
    async stop() {
      await Promise.allSettled([stores.close(), provider.close(), cloud.stop()]);
      await world.stop();
    },
  };
};
