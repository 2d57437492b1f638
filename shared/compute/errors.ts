/** What the vendor's errors ask of us. Nothing outside this folder knows its numbers and reasons. */

import { z } from 'zod';

import { SystemError, type ErrorCode } from '#shared/app/errors.ts';
import type { FailureBehaviour } from '#shared/domain/machine.ts';

/** What an error of the client library says, as far as it can be read. */
export interface VendorError {
  /** Absent when there was no answer. */
  readonly status?: number;
  /** Google's reason, such as `rateLimitExceeded`. */
  readonly reason?: string;
  readonly message: string;
}

const payloadSchema = z.object({
  error: z.object({
    message: z.string().optional(),
    errors: z.array(z.object({ reason: z.string().optional(), message: z.string().optional() })).optional(),
  }),
});

/** Where google-gax keeps the body of a refusal: the error itself has lost Google's reason. */
const PAYLOAD = Symbol.for('google-gax.rawHttpResponsePayload');

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

const payloadOf = (error: Error): z.infer<typeof payloadSchema>['error'] | undefined => {
  const raw: unknown = Reflect.get(error, PAYLOAD);
  return payloadSchema.safeParse(typeof raw === 'string' ? parsed(raw) : raw).data?.error;
};

/** Reads an error of the client library. */
export const readVendorError = (error: unknown): VendorError => {
  if (!(error instanceof Error)) return { message: String(error) };
  const status: unknown = Reflect.get(error, 'httpStatusCode');
  const payload = payloadOf(error);
  const reason = payload?.errors?.[0]?.reason;
  return {
    ...(typeof status === 'number' ? { status } : {}),
    ...(reason === undefined ? {} : { reason }),
    message: payload?.message ?? error.message,
  };
};

const CODE_PATTERNS: readonly (readonly [pattern: RegExp, behaviour: FailureBehaviour])[] = [
  [/^(?:ZONE_|REGION_)?RESOURCE_POOL_EXHAUSTED/u, 'CapacityUnavailable'],
  [/^(?:QUOTA_EXCEEDED|LIMIT_EXCEEDED|IP_SPACE_EXHAUSTED)/u, 'QuotaExceeded'],
  [/^(?:RESOURCE_)?ALREADY_EXISTS$/u, 'Conflict'],
  [
    /^(?:RATE_LIMIT|INTERNAL|BACKEND|SERVICE_UNAVAILABLE|TIMEOUT|RESOURCE_NOT_READY|RESOURCE_IN_USE)/u,
    'Transient',
  ],
  [/INVALID|UNSUPPORTED|NOT_FOUND|PERMISSION|FORBIDDEN|CONDITION_NOT_MET/u, 'InvalidSpec'],
];

const behaviourOfStatus = (status: number | undefined): FailureBehaviour => {
  if (status === 409) return 'Conflict';
  if (status === undefined || status === 0 || status === 429 || status >= 500) return 'Transient';
  return status >= 400 ? 'InvalidSpec' : 'Transient';
};

/** What a failed operation asks of us, by its own code first and by its HTTP status where that says nothing. */
export const behaviourOf = (code: string, httpStatus?: number): FailureBehaviour =>
  CODE_PATTERNS.find(([pattern]) => pattern.test(code))?.[1] ?? behaviourOfStatus(httpStatus);

const REASONS: Readonly<Record<string, ErrorCode>> = {
  rateLimitExceeded: 'Transient',
  userRateLimitExceeded: 'Transient',
  quotaExceeded: 'QuotaExceeded',
  dailyLimitExceeded: 'QuotaExceeded',
  alreadyExists: 'Conflict',
  conditionNotMet: 'Conflict',
  resourceNotReady: 'Transient',
  resourceInUseByAnotherResource: 'Transient',
  backendError: 'Transient',
  internalError: 'Transient',
  accessNotConfigured: 'NotConfigured',
};

const STATUSES: Readonly<Record<number, ErrorCode>> = {
  401: 'Unauthorised',
  403: 'Unauthorised',
  404: 'NotFound',
  408: 'Transient',
  409: 'Conflict',
  412: 'Conflict',
  429: 'Transient',
};

const codeOfText = (message: string): ErrorCode | undefined => {
  if (/RESOURCE_POOL_EXHAUSTED|does not have enough resources/u.test(message)) return 'CapacityUnavailable';
  if (/rate limit exceeded/iu.test(message)) return 'Transient';
  return /quota .*exceeded/iu.test(message) ? 'QuotaExceeded' : undefined;
};

const codeOfStatus = (status: number | undefined): ErrorCode => {
  if (status === undefined || status >= 500) return 'Transient';
  return STATUSES[status] ?? (status >= 400 ? 'InvalidSpec' : 'Transient');
};

const PROJECT_ITSELF = /'projects\/[^/']+'/u;
const ZONE_ITSELF = /'projects\/[^/']+\/zones\/[^/']+'/u;

/** What a 404 says depends on what was not found: only a plain one is about the machine or operation that was asked for. */
const codeOf404 = ({ message }: VendorError, call: string): ErrorCode => {
  if (PROJECT_ITSELF.test(message)) return 'NotConfigured';
  // A create call does not find what it refers to: the image, the machine type, the subnetwork, the zone.
  if (call === 'insert' || ZONE_ITSELF.test(message)) return 'InvalidSpec';
  // The library's words for a body that is not Google's: somebody on the way has answered.
  return message.startsWith('Error response from RPC') ? 'Transient' : 'NotFound';
};

const codeOf = (error: VendorError, call: string): ErrorCode =>
  error.status === 404
    ? codeOf404(error, call)
    : (REASONS[error.reason ?? ''] ?? codeOfText(error.message) ?? codeOfStatus(error.status));

const DEEPEST_CAUSE = 5;

/**
 * The same error without what the library attaches to it: its request, whose body has the machine's user data and password.
 */
export const withoutRequest = (error: unknown, depth = 0): Error | undefined => {
  if (!(error instanceof Error) || depth >= DEEPEST_CAUSE) return undefined;
  const cause = withoutRequest(error.cause, depth + 1);
  const bare = new Error(error.message, cause ? { cause } : undefined);
  bare.name = error.name;
  if (error.stack !== undefined) bare.stack = error.stack;
  return bare;
};

/** An error of the client library as one of ours, with the provider's own code and text. `call` is the method's name. */
export const toSystemError = (cause: unknown, call: string): SystemError => {
  if (cause instanceof SystemError) return cause;
  const error = readVendorError(cause);
  const code = error.reason ?? (error.status === undefined ? 'NoAnswer' : String(error.status));
  return new SystemError(codeOf(error, call), `Compute Engine ${call}: ${error.message}`, {
    provider: { code, message: error.message },
    cause: withoutRequest(cause),
  });
};
