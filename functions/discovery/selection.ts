/** Finds a proxy that grants: first among those of the recent picture, then among all that are free at this moment. */

import type { Clock } from '#shared/app/clock.ts';
import type { Ids } from '#shared/app/ids.ts';
import type { Log } from '#shared/app/log.ts';
import type { IdempotencyEntry } from '#shared/firestore/idempotency.ts';
import { newest, type LeaseStore, type StoredLeases } from '#shared/firestore/leases.ts';
import type { ServerTime } from '#shared/firestore/server-time.ts';

import {
  candidatesInOrder,
  matchesGate,
  refusalCounts,
  retryAfterSeconds,
  type Candidate,
  type RefusalCounts,
  type Wanted,
} from './decide.ts';
import type { Submission, SubmissionOutcome } from './commit-batch.ts';
import type { GroupCommit } from './group-commit.ts';
import { isOurs, readable, shared, type FleetPicture } from './picture.ts';

/** What one acquire asks for. `entry` is what its grant leaves behind, when it came with an `Idempotency-Key`. */
export interface LeaseRequest {
  readonly holder: string;
  readonly caller: string;
  readonly ttlSeconds: number;
  readonly wanted: Wanted;
  readonly exclude: ReadonlySet<string>;
  readonly entry?: Omit<IdempotencyEntry, 'leaseId'>;
}

export type Grant = Extract<SubmissionOutcome, { kind: 'granted' | 'replay' }>;

export interface Refusal {
  /** Proxies that match, whatever their health. */
  readonly matching: number;
  readonly counts: RefusalCounts;
  readonly retryAfterSeconds: number;
}

export interface Selection {
  /** `undefined` when no proxy that matches could be leased at the time of the call. */
  grant(request: LeaseRequest): Promise<Grant | undefined>;
  /** What a refusal says. */
  refusal(request: LeaseRequest): Promise<Refusal>;
}

export interface SelectionOptions {
  readonly picture: FleetPicture;
  readonly commits: GroupCommit;
  readonly leases: Pick<LeaseStore, 'free'>;
  readonly namespaces: readonly string[];
  readonly time: ServerTime;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
}

const PICTURE_AGE_MS = 1_000;
/** After this long no further proxy is tried. */
const DEADLINE_MS = 8_000;

interface Choice extends Candidate {
  readonly uid: string;
  readonly stored: StoredLeases;
}

export const makeSelection = (options: SelectionOptions): Selection => {
  const { picture, commits, leases, time, clock, ids, log } = options;
  const freeNow = shared(() => leases.free(time.now()));

  const choiceOf = (seen: StoredLeases): Choice => {
    const { uid } = seen.document.gate.proxy.ref;
    const known = commits.known(uid);
    const stored = newest(seen, known.stored) ?? seen;
    const { gate, freeAt, leases: live } = stored.document;
    return { uid, stored, gate, freeAt, load: Object.keys(live).length + known.acquiring };
  };

  const matching = (entries: readonly StoredLeases[], { wanted }: LeaseRequest): readonly Choice[] =>
    entries.filter(({ document }) => matchesGate(document.gate, wanted)).map(choiceOf);

  const acceptable = (entries: readonly StoredLeases[], request: LeaseRequest): readonly Choice[] =>
    matching(entries, request).filter(({ uid }) => !request.exclude.has(uid));

  const submissionFor = (uid: string, request: LeaseRequest): Submission => {
    const { holder, caller, ttlSeconds, entry } = request;
    const id = `${uid}.${ids.token()}`;
    return {
      operation: { kind: 'acquire', id, holder, caller, ttlSeconds },
      ...(entry ? { entry: { ...entry, leaseId: id } } : {}),
    };
  };

  const tryEach = async (choices: readonly Choice[], request: LeaseRequest, until: number) => {
    for (const { uid, stored } of choices) {
      if (clock.monotonic() > until) return undefined;
      const outcome = await commits.submit(uid, submissionFor(uid, request), stored);
      if (outcome.kind === 'granted' || outcome.kind === 'replay') return outcome;
    }
    return undefined;
  };

  return {
    async grant(request) {
      const until = clock.monotonic() + DEADLINE_MS;
      const recent = acceptable(await picture.recent(PICTURE_AGE_MS), request);
      const first = await tryEach(candidatesInOrder(recent, time.now(), ids.fraction()), request, until);
      if (first) return first;
      const free = readable(await freeNow(), log).filter(isOurs(options.namespaces));
      return tryEach(acceptable(free, request), request, until);
    },

    async refusal(request) {
      const recent = matching(await picture.recent(PICTURE_AGE_MS), request);
      // "Nothing matches" must not come from a picture that a new Proxy is not in yet.
      const all = recent.length > 0 ? recent : matching(await picture.fresh(), request);
      const acceptableOnes = all.filter(({ uid }) => !request.exclude.has(uid));
      return {
        matching: all.length,
        counts: refusalCounts(all, request.exclude),
        retryAfterSeconds: retryAfterSeconds(acceptableOnes, time.now()),
      };
    },
  };
};
