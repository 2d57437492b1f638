/** Goals 9 to 11: what probing costs. `BENCH_PARTS=rates,memory,rounds,counts` measures only these. */

import { measureMemory, measureRates } from '../health/rates.ts';
import { pin, startServers, type Servers } from '../health/processes.ts';
import { measureCounts, measureRounds } from '../health/rounds.ts';
import type { Bench } from '../figure.ts';
import { measureParts, type Parts } from '../parts.ts';

const PARTS: Parts<Servers> = {
  rates: measureRates,
  memory: measureMemory,
  rounds: measureRounds,
  counts: measureCounts,
};

export const bench: Bench = async (context) => {
  await pin(process.pid, 0);
  const servers = await startServers();
  try {
    return await measureParts(PARTS, servers, context);
  } finally {
    servers.stop();
  }
};
