/** Locks that expire: a document names its holder and, in server time, until when. Whoever crashes holds nothing for ever. */

import type { DocumentReference, DocumentSnapshot, Firestore, Timestamp } from '@google-cloud/firestore';

import { hasCode } from '#shared/app/errors.ts';

import { firestoreCall } from './client.ts';

/** A document that was claimed. `now` and `until` are server milliseconds; `previous` is what stood there before. */
export interface Claim {
  readonly now: number;
  readonly until: number;
  readonly previous: Readonly<Record<string, unknown>>;
  readonly updateTime: Timestamp;
}

interface Holding {
  readonly holder: string;
  readonly until: number;
}

const holdingOf = (snapshot: DocumentSnapshot): Holding => {
  const holder: unknown = snapshot.get('holder');
  const until: unknown = snapshot.get('until');
  return {
    holder: typeof holder === 'string' ? holder : '',
    until: typeof until === 'number' ? until : 0,
  };
};

/** What is not ours and still runs; `until` tells when it is worth another try. */
export interface Held {
  readonly heldUntil: number;
  readonly now: number;
}

const commitClaim = async (
  ref: DocumentReference,
  seen: DocumentSnapshot,
  fields: Readonly<Record<string, unknown>>,
): Promise<Timestamp> => {
  const { writeTime } = await firestoreCall(ref.firestore, `claim ${ref.path}`, () =>
    seen.updateTime
      ? ref.update({ ...fields }, { lastUpdateTime: seen.updateTime })
      : ref.create({ ...fields }),
  );
  return writeTime;
};

/**
 * Claims a document for `ttlMs` by compare-and-swap, leaving its other fields alone except those in `more`. The same holder
 * may claim again what it holds. Throws `Transient` when Firestore is away.
 */
export const claimDocument = async (
  ref: DocumentReference,
  holder: string,
  ttlMs: number,
  more: (
    previous: Readonly<Record<string, unknown>>,
    now: number,
  ) => Readonly<Record<string, unknown>> = () => ({}),
): Promise<Claim | Held> => {
  const seen = await firestoreCall(ref.firestore, `read ${ref.path}`, () => ref.get());
  const now = seen.readTime.toMillis();
  const current = holdingOf(seen);
  if (current.until > now && current.holder !== holder) return { heldUntil: current.until, now };
  const previous = seen.data() ?? {};
  const until = now + ttlMs;
  try {
    const updateTime = await commitClaim(ref, seen, { ...more(previous, now), holder, until });
    return { now, until, previous, updateTime };
  } catch (error) {
    if (!hasCode(error, 'Conflict', 'NotFound')) throw error;
  }
  // The client retries commits silently, so the conflict may be with our own write.
  const winner = await firestoreCall(ref.firestore, `read ${ref.path}`, () => ref.get());
  const { holder: winning, until: heldUntil } = holdingOf(winner);
  return winning === holder && heldUntil === until && winner.updateTime
    ? { now, until, previous, updateTime: winner.updateTime }
    : { heldUntil, now: winner.readTime.toMillis() };
};

export const isHeld = (result: object): result is Held => 'heldUntil' in result;

export interface Lock {
  /** Server milliseconds; from then on somebody else may have it. */
  readonly until: number;
  /** Frees the lock, unless it has expired and been taken by another since. */
  release(): Promise<void>;
}

/**
 * Takes `locks/{name}` for `ttlMs`, or answers `undefined` when another holder has it. `holder` must be unique to the run,
 * since the same holder gets its own lock again. Throws `Transient` when Firestore is away.
 */
export const acquireLock = async (
  db: Firestore,
  name: string,
  holder: string,
  ttlMs: number,
): Promise<Lock | undefined> => {
  const ref = db.collection('locks').doc(name);
  const claim = await claimDocument(ref, holder, ttlMs);
  if (isHeld(claim)) return undefined;
  return {
    until: claim.until,
    async release() {
      try {
        await firestoreCall(db, `release ${ref.path}`, () =>
          ref.delete({ lastUpdateTime: claim.updateTime }),
        );
      } catch (error) {
        if (!hasCode(error, 'Conflict', 'NotFound')) throw error;
      }
    },
  };
};
