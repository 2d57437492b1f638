/** The only way to Firestore: two databases, each with its own client, opened by whoever needs it and closed on shutdown. */

import { Firestore } from '@google-cloud/firestore';

import { SystemError, type ErrorCode } from '#shared/app/errors.ts';

import { CALL_DEADLINE_MS, withDeadline } from './deadline.ts';

export interface FirestoreOptions {
  readonly projectId: string;
  /** Default `(default)`. */
  readonly databaseId?: string;
}

/** Opens a client; `FIRESTORE_EMULATOR_HOST` is honoured by the library itself. Undefined fields are left out of writes. */
export const openFirestore = ({ projectId, databaseId = '(default)' }: FirestoreOptions): Firestore =>
  new Firestore({ projectId, databaseId, ignoreUndefinedProperties: true });

/** gRPC status codes (google.rpc.Code) by what they ask of us; anything else is worth a retry. */
const CODES: Readonly<Record<number, ErrorCode>> = {
  3: 'InvalidSpec',
  5: 'NotFound',
  6: 'Conflict',
  7: 'Unauthorised',
  9: 'Conflict',
  10: 'Conflict',
  16: 'Unauthorised',
};

const codeOf = (error: unknown): number | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'number' ? error.code : undefined;

/**
 * Runs a Firestore call; its errors become `SystemError`s (NotFound, Conflict, InvalidSpec, Unauthorised, Transient). One
 * that takes longer than `deadlineMs` throws `Transient` too, and may still be carried out.
 */
export const firestoreCall = async <T>(
  what: string,
  call: () => Promise<T>,
  deadlineMs: number = CALL_DEADLINE_MS,
): Promise<T> => {
  try {
    return await withDeadline(what, call, deadlineMs);
  } catch (cause) {
    if (cause instanceof SystemError) throw cause;
    const code = codeOf(cause);
    const kind = code === undefined ? 'Transient' : (CODES[code] ?? 'Transient');
    throw new SystemError(kind, `Firestore: ${what} failed`, { cause });
  }
};
