/** A run of trouble on a whole stack at length, as figures. */

import { startShared } from '#test/chaos/installations.ts';
import { runChaos, type ChaosReport } from '#test/chaos/run.ts';

import type { Figure } from './figure.ts';

export interface SoakOptions {
  readonly ids: readonly string[];
  /** Of each installation. */
  readonly proxies: number;
  readonly events: number;
  /** As numbered in the goals; 0 for none. */
  readonly goal: number;
  readonly seed: number;
  readonly say: (line: string) => void;
}

/** Long enough that the clocks differ by what clocks differ, short enough that an orphan ends in the run. */
const LIMITS = { minAgeMs: 120_000, skewMs: 60_000 };

/** Machines and their replacements, two addresses each, with room to spare. */
const rangesFor = (machines: number): number => Math.ceil((machines * 5) / 253) + 1;

const atMost = (max: number) => ({ atMost: max });
const atLeast = (min: number) => ({ atLeast: min });

const figuresOf = ({ goal, ids, proxies }: SoakOptions, report: ChaosReport): readonly Figure[] => {
  const { violations, differences, settledMs, counts } = report;
  const figure = (what: string, value: number, target: Figure['target'], unit = ''): Figure => ({
    goal,
    what,
    value,
    target,
    unit,
  });
  const counted = (what: string, least: number): Figure => figure(what, counts[what] ?? 0, atLeast(least));
  return [
    figure(`Proxies of each of ${ids.length} installations`, proxies, atLeast(1)),
    figure('what must never happen', violations.length, atMost(0)),
    figure('differences from what the Proxies describe, and leaks', differences.length, atMost(0)),
    figure('until all was right again', settledMs / 1000, atMost(1_800), 's'),
    counted('leases judged', 100),
    counted('deleted by gc', 1),
    counted('kill', 1),
    counted('kill of gc', 1),
  ];
};

export const soakStack = async (options: SoakOptions): Promise<readonly Figure[]> => {
  const { ids, proxies, events, seed, say } = options;
  const worlds = await startShared({ ids, seed, limits: LIMITS, ranges: rangesFor(proxies * ids.length) });
  try {
    const report = await runChaos(worlds, {
      seed,
      proxies,
      events,
      longestMs: 60 * 60_000,
      pauseMs: 400,
      settleMs: 30 * 60_000,
      patient: true,
      limits: LIMITS,
      say,
    });
    for (const line of [...report.violations, ...report.differences]) say(`! ${line}`);
    say(JSON.stringify(report.counts));
    return figuresOf(options, report);
  } finally {
    await worlds[0]?.stack.stop();
  }
};
