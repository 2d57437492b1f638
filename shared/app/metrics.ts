/** Counters. The default does nothing, so that nobody has to ask whether there are any. */

import type { Log } from './log.ts';

export interface Metrics {
  /** Adds `by` (default 1) to a counter; labels are few-valued strings, never identities of users. */
  count(name: string, labels?: Readonly<Record<string, string>>, by?: number): void;
}

export const noMetrics: Metrics = { count: () => undefined };

/** Counters as log lines, from which log-based metrics are made. */
export const logMetrics = (log: Log): Metrics => ({
  count: (metric, labels = {}, by = 1) => log.info('metric', { metric, labels, value: by }),
});
