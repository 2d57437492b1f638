/** Counters and distributions. The default does nothing, so that nobody has to ask whether there are any. */

import type { Meter } from '@opentelemetry/api';

import type { Log } from './log.ts';

/** Few-valued strings, never identities of users. */
export type Labels = Readonly<Record<string, string>>;

export interface Metrics {
  /** Adds `by` (default 1) to a counter. */
  count(name: string, labels?: Labels, by?: number): void;
  /** Adds values to a distribution, whose name ends in their unit. */
  record(name: string, labels: Labels, values: readonly number[]): void;
}

export const noMetrics: Metrics = { count: () => undefined, record: () => undefined };

/** A log-based metric takes one value from each line: of more values than this some stand for all. */
const MAX_LINES = 20;

/** Values at evenly spaced ranks: as a distribution they look like all of them. */
const representatives = (values: readonly number[]): readonly number[] => {
  if (values.length <= MAX_LINES) return values;
  const sorted = values.toSorted((a, b) => a - b);
  return Array.from(
    { length: MAX_LINES },
    (_, index) => sorted[Math.floor(((index + 0.5) * sorted.length) / MAX_LINES)] ?? 0,
  );
};

/** As log lines, from which log-based metrics are made. */
export const logMetrics = (log: Log): Metrics => {
  const write = (metric: string, labels: Labels, value: number): void =>
    log.info('metric', { metric, labels, value });
  return {
    count: (metric, labels = {}, by = 1) => write(metric, labels, by),
    record: (metric, labels, values) => {
      for (const value of representatives(values)) write(metric, labels, value);
    },
  };
};

/** Makes one per name. */
const cached = <T>(make: (name: string) => T): ((name: string) => T) => {
  const known = new Map<string, T>();
  return (name) => {
    const instrument = known.get(name) ?? make(name);
    known.set(name, instrument);
    return instrument;
  };
};

/** As OpenTelemetry's instruments; of its default meter they do nothing. */
export const meterMetrics = (meter: Meter): Metrics => {
  const counter = cached((name) => meter.createCounter(name));
  const histogram = cached((name) => meter.createHistogram(name));
  return {
    count: (name, labels = {}, by = 1) => counter(name).add(by, labels),
    record: (name, labels, values) => {
      for (const value of values) histogram(name).record(value, labels);
    },
  };
};

/** Whatever is counted, in each of these. */
export const bothMetrics = (one: Metrics, other: Metrics): Metrics => ({
  count(name, labels, by) {
    one.count(name, labels, by);
    other.count(name, labels, by);
  },
  record(name, labels, values) {
    one.record(name, labels, values);
    other.record(name, labels, values);
  },
});
