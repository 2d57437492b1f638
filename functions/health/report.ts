/** What a round says about itself: its answer, its log line, and its counts. */

import type { Conclusion, Finding } from './decide.ts';
import type { Running } from './parts.ts';
import { METRICS } from './signals.ts';

export interface ShardReport {
  readonly endpoints: number;
  /** Endpoints that were due, but for which there was no time, or whose probe was not possible. */
  readonly left: number;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly changes: number;
  /** Changes that could not be written; the next round finds them again. */
  readonly failed: number;
  /** Of several shards, the first that was inconclusive. */
  readonly conclusion: Conclusion;
}

/** How many shards had their round, were in other hands, or ended with an error. */
export interface ShardCounts {
  readonly done: number;
  readonly held: number;
  readonly failed: number;
}

export type RoundReport =
  | { readonly kind: 'skipped'; readonly why: string }
  | (ShardReport & {
      readonly kind: 'done';
      readonly shards: ShardCounts;
      /** Of successful probes, in milliseconds; absent when there was none. */
      readonly roundTripMs?: { readonly p50: number; readonly p99: number };
    });

export const wasProbed = ({ task, streak }: Finding): boolean => streak.newest !== task.streak.newest;

export const countOutcomes = (findings: readonly Finding[]): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const { streak } of findings.filter(wasProbed)) {
    const outcome = streak.newest?.outcome ?? 'NotProbed';
    counts[outcome] = (counts[outcome] ?? 0) + 1;
  }
  return counts;
};

const sumOf = (reports: readonly ShardReport[], key: 'endpoints' | 'left' | 'changes' | 'failed'): number =>
  reports.reduce((sum, report) => sum + report[key], 0);

const allOutcomes = (reports: readonly ShardReport[]): Record<string, number> => {
  const all: Record<string, number> = {};
  for (const [outcome, count] of reports.flatMap(({ outcomes }) => Object.entries(outcomes)))
    all[outcome] = (all[outcome] ?? 0) + count;
  return all;
};

const quantile = (sorted: readonly number[], q: number): number =>
  Math.round((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? 0) * 10) / 10;

/** The report of a run of at least one shard; `times` are those of its successful probes, in milliseconds. */
export const merged = (
  reports: readonly ShardReport[],
  shards: ShardCounts,
  times: readonly number[],
): RoundReport => {
  const sorted = times.toSorted((a, b) => a - b);
  const inconclusive = reports.find(({ conclusion }) => conclusion.kind === 'inconclusive');
  return {
    kind: 'done',
    shards,
    endpoints: sumOf(reports, 'endpoints'),
    left: sumOf(reports, 'left'),
    outcomes: allOutcomes(reports),
    changes: sumOf(reports, 'changes'),
    failed: sumOf(reports, 'failed'),
    conclusion: inconclusive?.conclusion ?? { kind: 'conclusive' },
    ...(sorted.length > 0
      ? { roundTripMs: { p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99) } }
      : {}),
  };
};

export const countRound = (report: RoundReport, { metrics }: Pick<Running, 'metrics'>): void => {
  if (report.kind === 'skipped') return;
  for (const [outcome, count] of Object.entries(report.outcomes))
    metrics.count(METRICS.probes, { outcome }, count);
  if (report.left > 0) metrics.count(METRICS.left, {}, report.left);
};
