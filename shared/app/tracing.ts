/**
 * Spans. They are OpenTelemetry's, so that whatever SDK is registered in the process gets them; without one, which is the
 * default, they cost a log line each, and all lines that are written inside of one carry its ids.
 */

import { AsyncLocalStorage } from 'node:async_hooks';

import {
  ROOT_CONTEXT,
  SpanStatusCode,
  TraceFlags,
  isSpanContextValid,
  trace,
  type Attributes,
  type Span,
} from '@opentelemetry/api';

import type { Clock } from './clock.ts';
import type { Ids } from './ids.ts';
import type { Fields } from './log.ts';
import { formatTraceparent, logFieldsOf, parseTraceparent, type SpanContext } from './trace-context.ts';

/** Name under which spans and metrics of this product appear. */
export const INSTRUMENTATION = 'egress-proxies';

export interface SpanOptions {
  /** `traceparent` of what caused it. Default: the span that the caller runs in; without any, a new trace begins. */
  readonly parent?: string | undefined;
  readonly attributes?: Attributes;
}

export interface Tracing {
  /** Runs `work` in a span of its own. Failures are noted in the span and thrown on. */
  span<T>(name: string, options: SpanOptions, work: () => Promise<T>): Promise<T>;
  /** Of the span that the caller runs in. */
  readonly traceparent: () => string | undefined;
  /** Fields of log lines that the caller writes. */
  readonly fields: () => Fields;
}

export const noTracing: Tracing = {
  span: (_name, _options, work) => work(),
  traceparent: () => undefined,
  fields: () => ({}),
};

/** A span that has ended. */
export interface EndedSpan {
  readonly name: string;
  readonly durationMs: number;
  readonly parentSpanId?: string;
  readonly attributes: Attributes;
  /** What its work threw. */
  readonly error?: unknown;
}

export interface TracingOptions {
  readonly projectId: string;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly ids: Pick<Ids, 'token'>;
  /** Called inside of the span. */
  readonly ended: (span: EndedSpan) => void;
}

const SPAN_ID_LENGTH = 16;

const otelContextOf = ({ traceId, spanId, sampled }: SpanContext) =>
  trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: sampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
    isRemote: true,
  });

export const makeTracing = ({ projectId, clock, ids, ended }: TracingOptions): Tracing => {
  const storage = new AsyncLocalStorage<SpanContext>();
  const current = (): SpanContext | undefined => storage.getStore();

  /** The span's own ids; where nobody records spans it has none, and gets some for the log. */
  const contextOf = (span: Span, parent: SpanContext | undefined): SpanContext => {
    const own = span.spanContext();
    if (isSpanContextValid(own) && own.spanId !== parent?.spanId) {
      const sampled = Boolean(own.traceFlags & TraceFlags.SAMPLED);
      return { traceId: own.traceId, spanId: own.spanId, sampled };
    }
    const spanId = ids.token().slice(0, SPAN_ID_LENGTH);
    return { traceId: parent?.traceId ?? ids.token(), spanId, sampled: parent?.sampled ?? false };
  };

  return {
    span(name, { parent: given, attributes = {} }, work) {
      const parent = parseTraceparent(given) ?? current();
      const span = trace
        .getTracer(INSTRUMENTATION)
        .startSpan(name, { attributes }, parent ? otelContextOf(parent) : ROOT_CONTEXT);
      const began = clock.monotonic();
      const end = (thrown: { readonly error?: unknown }): void => {
        span.end();
        ended({
          name,
          durationMs: Math.round(clock.monotonic() - began),
          ...(parent ? { parentSpanId: parent.spanId } : {}),
          attributes,
          ...thrown,
        });
      };
      return storage.run(contextOf(span, parent), async () => {
        try {
          const result = await work();
          end({});
          return result;
        } catch (error) {
          span.setStatus({ code: SpanStatusCode.ERROR });
          end({ error });
          throw error;
        }
      });
    },
    traceparent() {
      const context = current();
      return context && formatTraceparent(context);
    },
    fields() {
      const context = current();
      return context ? logFieldsOf(projectId, context) : {};
    },
  };
};
