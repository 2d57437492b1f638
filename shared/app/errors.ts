/** One error class. Its code names what the caller should do, so that only adapters know vendors' numbers. */

export const ERROR_CODES = [
  'NotFound',
  'Conflict',
  'CapacityUnavailable',
  'QuotaExceeded',
  'InvalidSpec',
  'Unauthorised',
  'NotConfigured',
  'Transient',
] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];

export interface ErrorDetails {
  /** The vendor's own code and text, for conditions and logs. */
  readonly provider?: { readonly code: string; readonly message: string };
  readonly cause?: unknown;
}

export class SystemError extends Error {
  override readonly name = 'SystemError';
  readonly code: ErrorCode;
  readonly provider: { readonly code: string; readonly message: string } | undefined;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.provider = details.provider;
  }
}

/** True for a `SystemError` with one of these codes. */
export const hasCode = (error: unknown, ...codes: readonly ErrorCode[]): error is SystemError =>
  error instanceof SystemError && codes.includes(error.code);

/** The messages of an error and its causes, outermost first. */
export const errorChain = (error: unknown): readonly string[] => {
  const chain: string[] = [];
  for (let current: unknown = error; current !== undefined && chain.length < 10;) {
    chain.push(
      current instanceof Error
        ? `${current.name}: ${current.message}`
        : (JSON.stringify(current) ?? typeof current),
    );
    current = current instanceof Error ? current.cause : undefined;
  }
  return chain;
};
