/** Refusals as Google's APIs word them: an HTTP status and a text. */

/** A refused call. `reason` is what the older APIs call it, `status` what the newer ones do. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly code: number;
  readonly reason: string;
  readonly status: string;

  constructor(code: number, reason: string, status: string, message: string) {
    super(message);
    this.code = code;
    this.reason = reason;
    this.status = status;
  }
}

export const notFound = (what: string): ApiError =>
  new ApiError(404, 'notFound', 'NOT_FOUND', `${what} was not found.`);

export const alreadyExists = (what: string): ApiError =>
  new ApiError(409, 'alreadyExists', 'ALREADY_EXISTS', `${what} already exists.`);

export const invalid = (why: string): ApiError => new ApiError(400, 'invalid', 'INVALID_ARGUMENT', why);

/** What cannot be done in the present state, such as deleting what others use. */
export const inUse = (what: string, by: string): ApiError =>
  new ApiError(
    400,
    'resourceInUseByAnotherResource',
    'FAILED_PRECONDITION',
    `${what} is already being used by ${by}.`,
  );

export const stale = (what: string): ApiError =>
  new ApiError(409, 'conflict', 'ABORTED', `${what} has changed meanwhile: the etag is not the current one.`);

export const disabled = (service: string, project: string): ApiError =>
  new ApiError(
    403,
    'accessNotConfigured',
    'PERMISSION_DENIED',
    `${service} has not been used in project ${project} before or it is disabled.`,
  );

export const errorBody = ({ code, message, reason, status }: ApiError): object => ({
  error: { code, message, status, errors: [{ message, domain: 'global', reason }] },
});
