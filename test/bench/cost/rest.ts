/** One minute in which nothing changes: a round of health and a run of gc, over Google's emulator. */

import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { Socket } from 'node:net';

import { z } from 'zod';

import { systemIds } from '#shared/app/ids.ts';
import { closeFirestore, openFirestore } from '#shared/firestore/client.ts';
import { recordStore } from '#shared/firestore/records.ts';
import { roundStore } from '#shared/firestore/rounds.ts';
import { viewWriter } from '#shared/firestore/views.ts';
import { spyOn } from '#test/integration/health/spy.ts';
import type { Gc, Health } from '#test/tools/cost-counts.ts';

import { measureMemory } from '../gc/memory.ts';
import { billReads } from '../gc/reads.ts';
import { startGcWorld } from '../gc/world.ts';
import { healthyRecord, makeFleet } from '../health/fleet.ts';
import { startServers, type Servers } from '../health/processes.ts';
import { createSurely, eachOf, startWorld } from '../leases/world.ts';

const RUNS = 3;

const reportSchema = z.object({
  kind: z.literal('done'),
  endpoints: z.number(),
  left: z.number(),
  changes: z.number(),
});

/** Of all connections that this process opens until `stop`. */
const meterBytes = () => {
  let bytes = 0;
  const opened = (message: unknown): void => {
    const { socket } = z.object({ socket: z.instanceof(Socket) }).parse(message);
    socket.once('close', () => {
      bytes += socket.bytesRead + socket.bytesWritten;
    });
  };
  subscribe('net.client.socket', opened);
  return () => {
    unsubscribe('net.client.socket', opened);
    return bytes;
  };
};

const rounded = (value: number): number => Math.round(value * 10) / 10;

const countRound = async (
  proxies: number,
  shards: number,
  servers: Servers,
  say: (line: string) => void,
): Promise<Health> => {
  const db = openFirestore({ projectId: `b${systemIds.token().slice(0, 12)}` });
  const records = recordStore(db);
  await eachOf(proxies, 64, (index) => createSurely(records, healthyRecord(index, servers.proxyPort)));
  const stores = { records, rounds: roundStore(db), views: viewWriter(db) };
  const fleet = makeFleet(stores, servers, shards);
  // The first round writes the views.
  await fleet.round();
  const spy = spyOn(db);
  const bill = billReads(db);
  const bytes = meterBytes();
  const began = performance.now();
  const { endpoints, left, changes } = reportSchema.parse((await fleet.round()).body);
  const seconds = (performance.now() - began) / 1000;
  if (endpoints !== proxies || changes > 0) throw new Error(`${endpoints} were due, ${changes} changed`);
  if (left > 0) say(`  for ${left} there was no time on this machine`);
  const writes = spy.writes();
  await closeFirestore(db);
  return {
    shards,
    reads: bill.reads,
    writes,
    probes: endpoints,
    probeBytes: Math.round(bytes() / (endpoints - left)),
    seconds: rounded(seconds),
  };
};

/** A run of gc over a fleet of this size. */
export const countGc = async (proxies: number, say: (line: string) => void): Promise<Gc> => {
  const world = await startGcWorld(proxies, say);
  try {
    const before = { ...world.count() };
    const began = performance.now();
    for (let run = 0; run < RUNS; run += 1) {
      const { status } = await world.run();
      if (status !== 200) throw new Error(`gc answered ${status}`);
    }
    const seconds = (performance.now() - began) / 1000 / RUNS;
    const { reads, writes, lists } = world.count();
    return {
      reads: rounded((reads - before.reads) / RUNS),
      writes: rounded((writes - before.writes) / RUNS),
      lists: (lists - before.lists) / RUNS,
      seconds: rounded(seconds),
      memoryMiB: Math.round(await measureMemory(world)),
    };
  } finally {
    await world.stop();
  }
};

/** More than a thousand are judged in four parts. */
const shardsFor = (proxies: number): number => (proxies > 1000 ? 4 : 1);

/** A round of health over a fleet of this size. */
export const countHealth = async (proxies: number, say: (line: string) => void): Promise<Health> => {
  const world = await startWorld();
  const servers = await startServers();
  try {
    return await countRound(proxies, shardsFor(proxies), servers, say);
  } finally {
    servers.stop();
    await world.stop();
  }
};
