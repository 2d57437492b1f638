/** Goal 11: rounds over 10,000 proxies, all healthy and with a tenth of them gone silent; goal 9: what a round costs in Firestore. */

import { createSecureContext } from 'node:tls';

import { z } from 'zod';

import { systemIds } from '#shared/app/ids.ts';
import { pause } from '#shared/app/wait.ts';
import { closeFirestore, openFirestore } from '#shared/firestore/client.ts';
import { recordStore } from '#shared/firestore/records.ts';
import { roundStore } from '#shared/firestore/rounds.ts';
import { viewWriter } from '#shared/firestore/views.ts';
import { spyOn } from '#test/integration/health/spy.ts';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { startFirestoreEmulator } from '#test/services/emulators.ts';

import { makeProber } from '../../../functions/health/probe/prober.ts';
import type { BenchContext, Figure } from '../figure.ts';
import { healthyRecord, makeFleet, memoryStores } from './fleet.ts';
import { median, placeOf, targetOf } from './probes.ts';
import { startServers, type Servers } from './processes.ts';

const FLEET = 10_000;
const COUNTED = 1000;
const SHARDS = 4;
const FLIPS = 20;

const reportSchema = z.object({
  kind: z.literal('done'),
  endpoints: z.number(),
  left: z.number(),
  failed: z.number(),
  changes: z.number(),
  outcomes: z.record(z.string(), z.number()),
  roundTripMs: z.object({ p50: z.number(), p99: z.number() }).optional(),
});

interface Timed {
  readonly report: z.output<typeof reportSchema>;
  /** Seconds until the last healthy proxy was done, and until the round was. */
  readonly healthy: number;
  readonly all: number;
}

const timedRound = async (servers: Servers, blackHoled: (index: number) => boolean): Promise<Timed> => {
  const records = Array.from({ length: FLEET }, (_, index) =>
    healthyRecord(index, blackHoled(index) ? servers.blackHolePort : servers.proxyPort),
  );
  const fleet = makeFleet(memoryStores(records), servers);
  const began = performance.now();
  const report = reportSchema.parse((await fleet.round()).body);
  const all = (performance.now() - began) / 1000;
  return { report, healthy: (fleet.lastSuccess() - began) / 1000, all };
};

/** Median milliseconds of probes that nothing else runs beside. */
const loneProbe = async ({ authority, tlsPort, proxyPort }: Servers): Promise<number> => {
  const prober = makeProber(createSecureContext({ ca: [authority.caPem] }), systemIds);
  const target = targetOf(`https://127.0.0.1:${tlsPort}/`);
  const times: number[] = [];
  for (let index = 0; index < 300; index += 1) {
    const began = performance.now();
    await prober.probe({ endpoint: placeOf(index, proxyPort) }, [target], 5000);
    if (index >= 100) times.push(performance.now() - began);
    await pause(2);
  }
  return median(times);
};

export const measureRounds = async (servers: Servers, { say }: BenchContext): Promise<readonly Figure[]> => {
  const healthy: number[] = [];
  const holed: number[] = [];
  const times: number[] = [];
  const lone: number[] = [];
  let left = 0;
  // An instance lives for many rounds: code that has not been compiled yet is of no interest.
  await timedRound(servers, () => false);
  for (let repeat = 0; repeat < 2; repeat += 1) {
    lone.push(await loneProbe(servers));
    const good = await timedRound(servers, () => false);
    const bad = await timedRound(servers, (index) => index % 10 === 3);
    healthy.push(good.healthy);
    holed.push(bad.healthy);
    times.push(good.report.roundTripMs?.p50 ?? Number.NaN);
    left = Math.max(left, good.report.left);
    for (const [name, { report, ...took }] of [
      ['all healthy', good],
      ['a tenth silent', bad],
    ] as const)
      say(
        `  ${name}: healthy ones after ${took.healthy.toFixed(1)} s, all after ${took.all.toFixed(1)} s; ${JSON.stringify(report)}`,
      );
    say(`  a lone probe: ${lone.at(-1)?.toFixed(2)} ms`);
  }
  return [
    {
      goal: 11,
      what: `time of ${FLEET} healthy proxies when a tenth is silent, against all healthy`,
      value: median(holed) / median(healthy),
      target: { atMost: 1.2 },
      unit: 'x',
    },
    {
      goal: 11,
      what: 'recorded round trip (p50), against a lone probe',
      value: median(times) / median(lone),
      target: { atMost: 1.5 },
      unit: 'x',
    },
    {
      goal: 11,
      what: `proxies of ${FLEET} for which a round of 55 s had no time`,
      value: left,
      target: { atMost: 0 },
      unit: '',
    },
  ];
};

const countRounds = async (servers: Servers, projectId: string): Promise<readonly Figure[]> => {
  const db = openFirestore({ projectId });
  const records = recordStore(db);
  const dying = await startServers(servers);
  const all = Array.from({ length: COUNTED }, (_, index) =>
    healthyRecord(index, index < FLIPS ? dying.proxyPort : servers.proxyPort),
  );
  while (all.length > 0) await Promise.all(all.splice(0, 20).map((record) => records.create(record)));
  let documents = 0;
  const counting = {
    ...records,
    probed: async (...given: Parameters<typeof records.probed>) => {
      const selection = await records.probed(...given);
      documents += selection.records.length;
      return selection;
    },
  };
  const stores = { records: counting, rounds: roundStore(db), views: viewWriter(db) };
  const fleet = makeFleet(stores, servers, SHARDS);
  // The first one writes the views.
  const first = reportSchema.parse((await fleet.round()).body);
  if (first.changes > 0) throw new Error(`${first.changes} endpoints are not as they were made`);
  const spy = spyOn(db);
  documents = 0;
  const steady = reportSchema.parse((await fleet.round()).body);
  const steadyWrites = spy.writes();
  const steadyReads = documents + SHARDS;
  // Endpoints that stop answering, as the round itself finds out: the records are not touched from outside.
  dying.stop();
  await pause(200);
  spy.reset();
  const changing = reportSchema.parse((await fleet.round()).body);
  const changingWrites = spy.writes();
  if (changing.changes !== FLIPS) throw new Error(`${changing.changes} flips instead of ${FLIPS}`);
  await closeFirestore(db);
  return [
    {
      goal: 9,
      what: `writes of a steady round, ${steady.endpoints} proxies in ${SHARDS} shards, per shard`,
      value: steadyWrites / SHARDS,
      target: { atMost: 1 },
      unit: '',
    },
    {
      goal: 9,
      what: `writes of a round with ${changing.changes} flips over those allowed (2 per flip and 2 per shard)`,
      value: changingWrites - (2 * changing.changes + 2 * SHARDS),
      target: { atMost: 0 },
      unit: '',
    },
    {
      goal: 9,
      what: 'documents read by a steady round, per proxy',
      value: steadyReads / COUNTED,
      target: { atMost: 1.01 },
      unit: '',
    },
  ];
};

export const measureCounts = async (servers: Servers): Promise<readonly Figure[]> => {
  const runDir = await mkdtemp(join(tmpdir(), 'bench-health-'));
  const emulator = await startFirestoreEmulator({ runDir });
  process.env['FIRESTORE_EMULATOR_HOST'] = emulator.host;
  try {
    return await countRounds(servers, 'bench-health');
  } finally {
    await emulator.stop();
    await rm(runDir, { recursive: true, force: true });
  }
};
