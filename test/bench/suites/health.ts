/** Goals 9 to 11: what probing costs. `BENCH_PARTS=rates,memory,rounds,counts` measures only these. */

import { measureMemory, measureRates } from '../health/rates.ts';
import { pin, startServers, type Servers } from '../health/processes.ts';
import { measureCounts, measureRounds } from '../health/rounds.ts';
import type { Bench, BenchContext, Figure } from '../figure.ts';

type Part = (servers: Servers, context: BenchContext) => Promise<readonly Figure[]>;

const PARTS: Readonly<Record<string, Part>> = {
  rates: measureRates,
  memory: measureMemory,
  rounds: measureRounds,
  counts: measureCounts,
};

export const bench: Bench = async (context) => {
  const asked = process.env['BENCH_PARTS']?.split(',') ?? Object.keys(PARTS);
  await pin(process.pid, 0);
  const servers = await startServers();
  const figures: Figure[] = [];
  try {
    for (const name of asked) {
      context.say(`--- ${name}`);
      figures.push(...((await PARTS[name]?.(servers, context)) ?? []));
    }
  } finally {
    servers.stop();
  }
  return figures;
};
