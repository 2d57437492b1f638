/** What a deployable tells about itself: its log, its metrics, its spans, and how they belong together. */

import { metrics } from '@opentelemetry/api';

import type { Clock } from './clock.ts';
import { errorChain } from './errors.ts';
import type { Ids } from './ids.ts';
import { makeLog, type Fields, type Log } from './log.ts';
import { bothMetrics, logMetrics, meterMetrics, type Metrics } from './metrics.ts';
import { INSTRUMENTATION, makeTracing, type EndedSpan, type Tracing } from './tracing.ts';

export interface Instrumentation {
  readonly log: Log;
  readonly metrics: Metrics;
  readonly tracing: Tracing;
}

export interface InstrumentationOptions {
  /** Of the deployable, as its log lines name it. */
  readonly name: string;
  readonly projectId: string;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly ids: Pick<Ids, 'token'>;
  readonly write: (line: string) => void;
  /** Further fields of whatever request a line is written in. */
  readonly scope?: () => Fields;
}

/** Log lines carry the span that they are written in; metrics and spans go to the log and to OpenTelemetry. */
export const instrument = (options: InstrumentationOptions): Instrumentation => {
  const { name, scope = () => ({}) } = options;
  // Who catches an error logs it, and may be outside of the span: here it is seen under its trace, too.
  const ended = ({ error, ...span }: EndedSpan): void =>
    log.debug('span', { span, ...(error === undefined ? {} : { error: errorChain(error) }) });
  const tracing = makeTracing({ ...options, ended });
  const log = makeLog(options.write, { function: name }, () => ({ ...scope(), ...tracing.fields() }));
  return {
    log,
    tracing,
    metrics: bothMetrics(logMetrics(log), meterMetrics(metrics.getMeter(INSTRUMENTATION))),
  };
};
