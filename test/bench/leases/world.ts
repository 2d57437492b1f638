/** A Firestore emulator with fleets in it, and instances of discovery over them. */

import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { systemClock, type Clock } from '#shared/app/clock.ts';
import { hasCode } from '#shared/app/errors.ts';
import type { HttpHandler } from '#shared/app/http.ts';
import { systemIds } from '#shared/app/ids.ts';
import { makeLog } from '#shared/app/log.ts';
import { noMetrics } from '#shared/app/metrics.ts';
import { pause, retry } from '#shared/app/wait.ts';
import { DEFAULT_HEALTH_CHECK } from '#shared/domain/proxy.ts';
import type { ProxyRecord } from '#shared/domain/record.ts';
import { closeFirestore, firestoreCall, openFirestore } from '#shared/firestore/client.ts';
import { idempotencyStore } from '#shared/firestore/idempotency.ts';
import { leaseStore, type LeaseStore } from '#shared/firestore/leases.ts';
import { recordStore, type RecordStore } from '#shared/firestore/records.ts';
import { serverTime } from '#shared/firestore/server-time.ts';
import { viewStore, viewWriter } from '#shared/firestore/views.ts';
import { startFirestoreEmulator, type RunningEmulator } from '#test/services/emulators.ts';

import { makeHandler } from '../../../functions/discovery/handler.ts';
import { countingFleet, countingIdempotency, countingLeases, noCounts, type Counts } from './counting.ts';

export const INSTALLATION = 'bench';

/** Different values of the label `index`. */
export const INDEXES = 10;

const endpoint = (index: number) => ({
  id: randomUUID(),
  host: `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`,
  port: 3128,
  scheme: 'http' as const,
  instanceId: String(index),
  credentialsVersion: '',
});

export const proxyRecord = (index: number, maxLeases: number): ProxyRecord => ({
  ref: { namespace: 'crawlers', name: `proxy-${String(index).padStart(5, '0')}`, uid: randomUUID() },
  installation: INSTALLATION,
  provider: 'gcp',
  generation: 1,
  labels: { pool: 'retail', index: String(index % INDEXES) },
  maxLeases,
  cordoned: false,
  deleting: false,
  drainTimeoutSeconds: 300,
  healthCheck: DEFAULT_HEALTH_CHECK,
  serving: {
    endpoint: endpoint(index),
    verdict: { state: 'Healthy', since: 1, checkedAt: 1, outcome: 'Ok' },
    publishedAt: 1,
    zone: 'europe-west1-b',
  },
  draining: [],
  machines: [],
  incarnation: 1,
  gone: false,
});

export interface Instance {
  readonly handler: HttpHandler;
  readonly counts: Counts;
}

export interface InstanceOptions {
  readonly clock?: Clock;
  readonly wrap?: (store: LeaseStore) => LeaseStore;
}

export const eachOf = async (count: number, atOnce: number, work: (index: number) => Promise<void>) => {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) await work(index);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
};

/** A busy machine's emulator may be slower than a call may be; what was stored all the same is there. */
export const createSurely = async (records: RecordStore, record: ProxyRecord): Promise<void> => {
  try {
    await retry(() => records.create(record), { attempts: 6, baseMs: 100, capMs: 2_000, ids: systemIds });
  } catch (error) {
    if (!hasCode(error, 'Conflict')) throw error;
  }
};

/** Longer than the margin that readers look back before the views. */
const SETTLE_MS = 16_000;

/** A database of its own in the emulator. */
export const openFleet = (projectId: string) => {
  const db = openFirestore({ projectId });
  const records = recordStore(db);
  const writer = viewWriter(db);
  const showViews = async (): Promise<number> =>
    writer.write(
      { installation: INSTALLATION, shard: `${INSTALLATION}-0`, shards: 1 },
      await records.probed(INSTALLATION),
    );
  return {
    projectId,
    db,
    records,
    async addProxies(count: number, maxLeases: number): Promise<readonly ProxyRecord[]> {
      const added: ProxyRecord[] = [];
      await eachOf(count, 64, async (index) => {
        const record = proxyRecord(index, maxLeases);
        await createSurely(records, record);
        added.push(record);
      });
      return added;
    },
    showViews,
    /** The same as in a fleet in which nothing has changed for a while: what is in the views is read nowhere else. */
    showSettledViews: async (): Promise<number> => {
      await pause(SETTLE_MS);
      return showViews();
    },
    instance({ clock = systemClock, wrap = (store) => store }: InstanceOptions = {}): Instance {
      const counts = noCounts();
      const time = serverTime(clock);
      const idempotency = countingIdempotency(idempotencyStore(db), counts);
      const viewCount = async (): Promise<number> =>
        (await firestoreCall(db, 'count views', () => db.collection('views').select().get())).docs.length;
      const handler = makeHandler({
        leases: wrap(countingLeases(leaseStore(db, time, idempotency), counts)),
        idempotency,
        ...countingFleet(records, viewStore(db, time), { views: viewCount }, counts),
        credentials: { read: () => Promise.resolve(undefined) },
        time,
        publisher: { probe: () => Promise.resolve() },
        installation: INSTALLATION,
        namespaces: ['*'],
        ttl: { minSeconds: 1, maxSeconds: 86_400, defaultSeconds: 300 },
        clock,
        ids: systemIds,
        log: makeLog(() => undefined),
        metrics: noMetrics,
      });
      return { handler, counts };
    },
    close: () => closeFirestore(db),
  };
};
export type Fleet = ReturnType<typeof openFleet>;

export interface World {
  readonly emulator: RunningEmulator;
  readonly runDir: string;
  /** An empty database. */
  fleet(): Fleet;
  stop(): Promise<void>;
}

export const startWorld = async (): Promise<World> => {
  const parent = join(import.meta.dirname, '../../../.local/run');
  mkdirSync(parent, { recursive: true });
  const runDir = mkdtempSync(join(parent, 'bench-leases-'));
  const emulator = await startFirestoreEmulator({ runDir });
  process.env['FIRESTORE_EMULATOR_HOST'] = emulator.host;
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  const fleets: Fleet[] = [];
  const warm = openFirestore({ projectId: 'warm-up' });
  await warm.collection('warm-up').add({ at: 1 });
  await closeFirestore(warm);
  return {
    emulator,
    runDir,
    fleet() {
      const fleet = openFleet(`b${systemIds.token().slice(0, 12)}`);
      fleets.push(fleet);
      return fleet;
    },
    async stop() {
      await Promise.allSettled(fleets.map((fleet) => fleet.close()));
      await emulator.stop();
      rmSync(runDir, { recursive: true, force: true });
    },
  };
};
