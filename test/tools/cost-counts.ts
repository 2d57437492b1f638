/** What was counted for the page on costs: `npm run bench -- cost` writes it, the tables are made from it. */

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { z } from 'zod';

/** A round, in which nothing changes. */
const health = z.object({
  /** In as many parts as the fleet is judged in. */
  shards: z.number(),
  /** Documents of Firestore. */
  reads: z.number(),
  writes: z.number(),
  /** Through proxies, each of which is a request of echo. */
  probes: z.number(),
  /** Bytes of one probe on the wire, TLS included, TCP and IP left out. */
  probeBytes: z.number(),
  /** For which an instance is busy. */
  seconds: z.number(),
});
export type Health = z.output<typeof health>;

/** A run that finds nothing to do. */
const gc = z.object({
  reads: z.number(),
  writes: z.number(),
  /** Calls of Compute Engine. */
  lists: z.number(),
  seconds: z.number(),
  /** The most that its process ever has. */
  memoryMiB: z.number(),
});
export type Gc = z.output<typeof gc>;

const atRest = z.object({ health, gc });
/** One minute. */
export type AtRest = z.output<typeof atRest>;

const change = z.object({
  reads: z.number(),
  writes: z.number(),
  deletes: z.number(),
  /** Of Pub/Sub, each of which is a request too. */
  messages: z.number(),
  computeCalls: z.number(),
});
export type Change = z.output<typeof change>;

const leases = z.object({ reads: z.number(), writes: z.number(), requests: z.number() });
export type Leases = z.output<typeof leases>;

const schema = z.object({
  /** By the number of proxies. */
  atRest: z.record(z.string(), atRest.partial()),
  /** Per proxy. */
  changes: z.object({ created: change, replaced: change, deleted: change }).partial(),
  /** Per 1,000 leases, each acquired, renewed once and released: one after the other, and 64 at once on one proxy. */
  leases: z.object({ alone: leases, crowded: leases }).partial(),
});
export type Counts = z.output<typeof schema>;

const FILE = join(import.meta.dirname, 'cost-counts.json');

export const readCounts = async (): Promise<Counts> => schema.parse(JSON.parse(await readFile(FILE, 'utf8')));

/** What was not counted this time stays. */
export const mergeCounts = async (news: Partial<Counts>): Promise<void> => {
  const before = await readCounts();
  const sizes = Object.entries(news.atRest ?? {}).map(
    ([size, counted]) => [size, { ...before.atRest[size], ...counted }] as const,
  );
  const merged: Counts = {
    atRest: { ...before.atRest, ...Object.fromEntries(sizes) },
    changes: { ...before.changes, ...news.changes },
    leases: { ...before.leases, ...news.leases },
  };
  await writeFile(FILE, `${JSON.stringify(merged, null, 2)}\n`);
};
