/**
 * Operations that cost money, counted on the real functions and Google's emulators: `test/tools/cost-counts.json`, from which
 * `npm run generate` makes the page on costs. `BENCH_PARTS=gc-1000,changes` counts only these anew.
 */

import { mergeCounts } from '#test/tools/cost-counts.ts';

import { countChanges } from '../cost/changes.ts';
import { countGc, countHealth } from '../cost/rest.ts';
import type { Bench, BenchContext, Figure } from '../figure.ts';
import { measureParts, type Parts } from '../parts.ts';

const figure = (what: string, value: number, atMost: number, unit = ''): Figure => ({
  goal: 0,
  what,
  value,
  target: { atMost },
  unit,
});

/** What the function has in production, less what the platform needs beside the process. */
const GC_MIB = 1000;

const gc =
  (proxies: number) =>
  async (_: undefined, { say }: BenchContext): Promise<readonly Figure[]> => {
    const counted = await countGc(proxies, say);
    await mergeCounts({ atRest: { [String(proxies)]: { gc: counted } } });
    const per = `per run of gc, ${proxies} proxies`;
    return [
      figure(`documents read ${per}`, counted.reads, Math.max(5, Math.ceil(proxies / 1000))),
      figure(`documents written ${per}`, counted.writes, 0),
      figure(`calls of Compute Engine ${per}`, counted.lists, Math.ceil(proxies / 500)),
      figure(`memory of gc at its most, ${proxies} proxies`, counted.memoryMiB, GC_MIB, 'MiB'),
    ];
  };

const health =
  (proxies: number) =>
  async (_: undefined, { say }: BenchContext): Promise<readonly Figure[]> => {
    const counted = await countHealth(proxies, say);
    await mergeCounts({ atRest: { [String(proxies)]: { health: counted } } });
    const per = `per round of health, ${proxies} proxies`;
    return [
      figure(`documents read ${per}`, counted.reads, 1.01 * proxies + 10),
      figure(`documents written ${per}`, counted.writes, counted.shards),
      figure(`bytes of a probe, ${proxies} proxies`, counted.probeBytes, 8000),
    ];
  };

/** A little more than was counted when this was written: what costs more from one day to the next is worth a look. */
const LIMITS = {
  created: { reads: 7, writes: 12, deletes: 0, messages: 4, computeCalls: 4 },
  replaced: { reads: 35, writes: 24, deletes: 1, messages: 4, computeCalls: 30 },
  deleted: { reads: 14, writes: 10, deletes: 1, messages: 2, computeCalls: 20 },
  alone: { reads: 200, writes: 3000, requests: 3000 },
  crowded: { reads: 50, writes: 300, requests: 3000 },
} as const;

const against = <K extends string>(
  counted: Readonly<Record<K, number>> | undefined,
  limits: Readonly<Record<K, number>>,
  of: string,
): readonly Figure[] =>
  Object.entries<number>(limits).map(([what, limit]) => {
    const values: Readonly<Record<string, number>> = counted ?? {};
    return figure(`${what} ${of}`, values[what] ?? Number.NaN, limit);
  });

const changes = async (_: undefined, { say }: BenchContext): Promise<readonly Figure[]> => {
  const counted = await countChanges(say);
  await mergeCounts(counted);
  const { created, replaced, deleted } = counted.changes;
  const { alone, crowded } = counted.leases;
  return [
    ...against(created, LIMITS.created, 'per proxy that is created'),
    ...against(replaced, LIMITS.replaced, 'per proxy that is replaced'),
    ...against(deleted, LIMITS.deleted, 'per proxy that is deleted'),
    ...against(alone, LIMITS.alone, 'per 1,000 leases, one after the other'),
    ...against(crowded, LIMITS.crowded, 'per 1,000 leases, 64 at once on one proxy'),
  ];
};

const PARTS: Parts<undefined> = {
  'gc-100': gc(100),
  'gc-1000': gc(1000),
  'gc-10000': gc(10_000),
  'health-100': health(100),
  'health-1000': health(1000),
  'health-10000': health(10_000),
  changes,
};

export const bench: Bench = (context) => measureParts(PARTS, undefined, context);
