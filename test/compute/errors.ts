/** Errors as the Compute Engine API words them. */

/** A refusal of a call: HTTP status, Google's reason and text. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly reason: string;

  constructor(status: number, reason: string, message: string) {
    super(message);
    this.status = status;
    this.reason = reason;
  }
}

const USAGE_LIMITS = new Set(['rateLimitExceeded', 'quotaExceeded', 'userRateLimitExceeded']);

/** The JSON body of a refusal. */
export const errorBody = (error: ApiError): unknown => ({
  error: {
    code: error.status,
    message: error.message,
    errors: [
      {
        message: error.message,
        domain: USAGE_LIMITS.has(error.reason) ? 'usageLimits' : 'global',
        reason: error.reason,
      },
    ],
  },
});

export const notFound = (resource: string): ApiError =>
  new ApiError(404, 'notFound', `The resource '${resource}' was not found`);

export const alreadyExists = (resource: string): ApiError =>
  new ApiError(409, 'alreadyExists', `The resource '${resource}' already exists`);

export const invalid = (field: string, value: string, why: string): ApiError =>
  new ApiError(400, 'invalid', `Invalid value for field '${field}': '${value}'. ${why}`);

export const notReady = (resource: string): ApiError =>
  new ApiError(400, 'resourceNotReady', `The resource '${resource}' is not ready`);

const STATUS_REASONS: Readonly<Record<number, readonly [reason: string, message: string]>> = {
  400: ['invalid', 'Invalid request'],
  401: ['authError', 'Invalid Credentials'],
  403: ['rateLimitExceeded', 'Rate Limit Exceeded'],
  404: ['notFound', 'The resource was not found'],
  409: ['resourceInUseByAnotherResource', 'The resource is in use'],
  412: ['conditionNotMet', 'Precondition failed'],
  429: ['rateLimitExceeded', 'Too many requests'],
  500: ['internalError', 'Internal error. Please try again or contact Google Support.'],
  503: ['backendError', 'Service is currently unavailable.'],
};

/** The error that a scripted status stands for; reason and text can be given. */
export const errorOfStatus = (status: number, reason?: string, message?: string): ApiError => {
  const [usualReason, usualMessage] = STATUS_REASONS[status] ?? ['backendError', `Status ${status}`];
  return new ApiError(status, reason ?? usualReason, message ?? usualMessage);
};

/** The end of a failed operation: codes and texts inside, an HTTP status outside. */
export interface OperationError {
  readonly errors: readonly {
    readonly code: string;
    readonly message: string;
    readonly errorDetails?: readonly object[];
  }[];
  readonly httpStatus: number;
  readonly httpMessage: string;
}

export const operationError = (
  code: string,
  message: string,
  httpStatus = 400,
  httpMessage = 'BAD REQUEST',
): OperationError => ({ errors: [{ code, message }], httpStatus, httpMessage });

/** No capacity in a zone; with `available`, details that name zones which have some. */
export const stockOutError = (
  zone: string,
  details: boolean,
  available: readonly string[] = [],
): OperationError => {
  const code = `ZONE_RESOURCE_POOL_EXHAUSTED${details ? '_WITH_DETAILS' : ''}`;
  const message = `The zone '${zone}' does not have enough resources available to fulfill the request. Try a different zone, or try again later.`;
  const errorInfo = {
    reason: 'stockout',
    domain: 'compute.googleapis.com',
    metadatas: { zonesAvailable: available.join(',') },
  };
  const more = available.length > 0 ? { errorDetails: [{ errorInfo }] } : {};
  return { errors: [{ code, message, ...more }], httpStatus: 503, httpMessage: 'SERVICE UNAVAILABLE' };
};
