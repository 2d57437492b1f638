/** W3C Trace Context: which trace something belongs to, as headers and attributes of messages carry it. */

export interface SpanContext {
  /** 32 lower-case hex digits, not all zero. */
  readonly traceId: string;
  /** 16 of them. */
  readonly spanId: string;
  readonly sampled: boolean;
}

type Headers = Readonly<Record<string, string | undefined>>;

const TRACE_PARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/;
/** The platform's older header: the span in decimal digits. */
const CLOUD_TRACE = /^([0-9a-f]{32})(?:\/(\d{1,20}))?(?:;o=(\d))?/i;
const ZEROS = /^0+$/;
const SAMPLED = 1;

const valid = (traceId: string, spanId: string, sampled: boolean): SpanContext | undefined =>
  ZEROS.test(traceId) || ZEROS.test(spanId) ? undefined : { traceId, spanId, sampled };

/** `undefined` for whatever is no `traceparent`. */
export const parseTraceparent = (text: string | undefined): SpanContext | undefined => {
  const [, traceId, spanId, flags] = TRACE_PARENT.exec(text ?? '') ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return valid(traceId, spanId, (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED);
};

export const formatTraceparent = ({ traceId, spanId, sampled }: SpanContext): string =>
  `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;

const parseCloudTrace = (text: string | undefined): SpanContext | undefined => {
  const [, traceId, span = '0', sampled] = CLOUD_TRACE.exec(text ?? '') ?? [];
  if (traceId === undefined) return undefined;
  const spanId = BigInt.asUintN(64, BigInt(span)).toString(16).padStart(16, '0');
  return valid(traceId.toLowerCase(), spanId, sampled === '1');
};

/** The span that a request came from, by its headers; `undefined` when they name none. */
export const contextOfRequest = (headers: Headers): SpanContext | undefined =>
  parseTraceparent(headers['traceparent']) ?? parseCloudTrace(headers['x-cloud-trace-context']);

/** The same as a `traceparent`. */
export const parentOf = ({ headers }: { readonly headers: Headers }): string | undefined => {
  const context = contextOfRequest(headers);
  return context && formatTraceparent(context);
};

/** The fields by which Cloud Logging shows a line under its span. */
export const logFieldsOf = (
  projectId: string,
  { traceId, spanId, sampled }: SpanContext,
): Readonly<Record<string, unknown>> => ({
  'logging.googleapis.com/trace': `projects/${projectId}/traces/${traceId}`,
  'logging.googleapis.com/spanId': spanId,
  'logging.googleapis.com/trace_sampled': sampled,
});
