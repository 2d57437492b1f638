/** The only way to Firestore: two databases, each with its own client, opened by whoever needs it and closed on shutdown. */

import { Firestore } from '@google-cloud/firestore';

import { SystemError, type ErrorCode } from '#shared/app/errors.ts';
import { pause } from '#shared/app/wait.ts';

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

/** What Firestore calls a query that no index serves: it has the code of a failed precondition, but no retry mends it. */
const NO_INDEX = /requires an? (?:\w+ )?index/i;

const kindOf = (cause: unknown): ErrorCode => {
  if (cause instanceof Error && NO_INDEX.test(cause.message)) return 'NotConfigured';
  const code = codeOf(cause);
  return code === undefined ? 'Transient' : (CODES[code] ?? 'Transient');
};

/** What a client is at, until the library itself has done with it. */
interface Calls {
  readonly running: Set<Promise<unknown>>;
  isClosing: boolean;
}

const callsOf = new WeakMap<Firestore, Calls>();

const callsOn = (db: Firestore): Calls => {
  const known = callsOf.get(db) ?? { running: new Set(), isClosing: false };
  callsOf.set(db, known);
  return known;
};

const noted = <T>(db: Firestore, call: () => Promise<T>): Promise<T> => {
  const { running } = callsOn(db);
  const result = call();
  const forget = (): boolean => running.delete(result);
  running.add(result);
  result.then(forget, forget);
  return result;
};

/**
 * Runs a Firestore call; its errors become `SystemError`s (NotFound, Conflict, InvalidSpec, NotConfigured, Unauthorised, Transient). One
 * that takes longer than `deadlineMs` throws `Transient` too, and may still be carried out; so does one on a closed client.
 */
export const firestoreCall = async <T>(
  db: Firestore,
  what: string,
  call: () => Promise<T>,
  deadlineMs: number = CALL_DEADLINE_MS,
): Promise<T> => {
  if (callsOn(db).isClosing) {
    throw new SystemError('Transient', `Firestore: ${what}: this instance is shutting down`);
  }
  try {
    return await withDeadline(what, () => noted(db, call), deadlineMs);
  } catch (cause) {
    if (cause instanceof SystemError) throw cause;
    throw new SystemError(kindOf(cause), `Firestore: ${what} failed`, { cause });
  }
};

/**
 * Ends a client when its calls are done, at most after one call's deadline. No call may reach a terminated client: the
 * library rejects a promise there that nobody can hold, which ends the process.
 */
export const closeFirestore = async (db: Firestore): Promise<void> => {
  const calls = callsOn(db);
  calls.isClosing = true;
  const isDone = new AbortController();
  const done = Promise.allSettled(calls.running).then(() => isDone.abort());
  await Promise.race([done, pause(CALL_DEADLINE_MS, isDone.signal)]);
  await db.terminate();
};
