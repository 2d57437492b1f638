/** The randomised run at length: `BENCH_PROXIES` (300) Proxies, `BENCH_EVENTS` (2000) events, faults of every kind. */

import { runChaos } from '#test/chaos/run.ts';
import { startWorld } from '#test/e2e/world.ts';

import type { Bench } from '../figure.ts';

/** Machines and their replacements, two addresses each, with room to spare. */
const rangesFor = (proxies: number): number => Math.ceil((proxies * 5) / 253) + 1;

export const bench: Bench = async ({ seed, say }) => {
  const proxies = Number(process.env['BENCH_PROXIES'] ?? 300);
  const events = Number(process.env['BENCH_EVENTS'] ?? 2_000);
  const world = await startWorld('soak', { scheduled: false, ranges: rangesFor(proxies) });
  try {
    const report = await runChaos(world, {
      seed,
      proxies,
      events,
      longestMs: 60 * 60_000,
      pauseMs: 400,
      settleMs: 30 * 60_000,
      patient: true,
      say,
    });
    for (const line of [...report.violations, ...report.differences]) say(`! ${line}`);
    say(JSON.stringify(report.counts));
    const count = (what: string): number => report.counts[what] ?? 0;
    return [
      { goal: 0, what: 'Proxies', value: proxies, target: { atLeast: 1 }, unit: '' },
      {
        goal: 0,
        what: 'what must never happen',
        value: report.violations.length,
        target: { atMost: 0 },
        unit: '',
      },
      {
        goal: 0,
        what: 'differences from what the Proxies describe',
        value: report.differences.length,
        target: { atMost: 0 },
        unit: '',
      },
      {
        goal: 0,
        what: 'until all was right again',
        value: report.settledMs / 1000,
        target: { atMost: 1_800 },
        unit: 's',
      },
      { goal: 0, what: 'leases judged', value: count('leases judged'), target: { atLeast: 100 }, unit: '' },
      { goal: 0, what: 'kills', value: count('kill'), target: { atLeast: 1 }, unit: '' },
    ];
  } finally {
    await world.stack.stop();
  }
};
