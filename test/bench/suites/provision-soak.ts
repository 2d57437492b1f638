/** The randomised run at length: `BENCH_PROXIES` (300) Proxies, `BENCH_EVENTS` (2000) events, faults of every kind. */

import { soakStack } from '../soak-stack.ts';
import type { Bench } from '../figure.ts';

export const bench: Bench = ({ seed, say }) =>
  soakStack({
    ids: ['prod'],
    proxies: Number(process.env['BENCH_PROXIES'] ?? 300),
    events: Number(process.env['BENCH_EVENTS'] ?? 2_000),
    goal: 0,
    seed,
    say,
  });
