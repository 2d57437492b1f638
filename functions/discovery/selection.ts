/** Finds a proxy that grants: first in the fleet as it is known, then among all that are free at this moment. */

import type { Clock } from '#shared/app/clock.ts';
import type { Ids } from '#shared/app/ids.ts';
import type { Log } from '#shared/app/log.ts';
import type { Gate } from '#shared/domain/gate.ts';
import { leasesOn } from '#shared/domain/lease-standing.ts';
import type { IdempotencyEntry } from '#shared/firestore/idempotency.ts';
import { newest, versionTime, type LeaseStore, type StoredLeases } from '#shared/firestore/leases.ts';
import type { ServerTime } from '#shared/firestore/server-time.ts';

import {
  candidatesInOrder,
  inOrder,
  matchesGate,
  refusalCounts,
  retryAfterSeconds,
  type Candidate,
  type RefusalCounts,
  type Wanted,
} from './decide.ts';
import type { Submission, SubmissionOutcome } from './commit-batch.ts';
import type { GroupCommit, Known } from './group-commit.ts';
import { entryOf, isOurs, readable, type Fleet, type FleetEntry } from './fleet.ts';

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
import { shared } from './shared.ts';

export interface SelectionOptions {
  readonly fleet: Fleet;
  readonly commits: GroupCommit;
  readonly leases: Pick<LeaseStore, 'free'>;
  readonly namespaces: readonly string[];
  readonly time: ServerTime;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
}

const CHOICE_AGE_MS = 20_000;
const REFUSAL_AGE_MS = 1_000;
/** Proxies that are tried before all free ones are asked for. */
const TRIES = 8;
/** After this long no further proxy is tried. */
const DEADLINE_MS = 8_000;

interface Choice extends Candidate {
  readonly uid: string;
  readonly stored: StoredLeases | undefined;
}

const sameOffer = (a: Gate, b: Gate): boolean =>
  a.endpoint?.id === b.endpoint?.id && a.maxLeases === b.maxLeases && a.open === b.open;

/** What is known of a proxy, from the fleet and from this instance's own reads and writes. */
const choiceOf = (entry: FleetEntry, known: Known, now: number): Choice => {
  const stored = newest(entry.stored, known.stored);
  const { gate, at } = entry;
  const { uid } = gate.proxy.ref;
  const { acquiring, isContended } = known;
  if (!stored) return { uid, stored, gate, freeAt: 0, load: acquiring, isContended };
  const isNewer = versionTime(stored.version) >= at;
  const { freeAt } = stored.document;
  const current = isNewer ? stored.document.gate : gate;
  return {
    uid,
    stored,
    gate: current,
    // Another offer has other slots.
    freeAt: isNewer || sameOffer(gate, stored.document.gate) ? freeAt : 0,
    load: leasesOn(stored.document, current.endpoint?.id ?? '', now).length + acquiring,
    isContended,
  };
};

const KEPT_FULL = 50_000;

/** Until when no lease can be had of proxies whose documents are remembered no more. */
const makeFullness = () => {
  const until = new Map<string, number>();
  return {
    note(uid: string, outcome: SubmissionOutcome): void {
      if (until.size > KEPT_FULL) until.clear();
      if (outcome.kind === 'full') until.set(uid, outcome.freeAt);
      else until.delete(uid);
    },
    freeAt: (uid: string): number => until.get(uid) ?? 0,
  };
};

const KEPT_REQUESTS = 100;

/** Proxies that match; remembered for as long as the fleet is the same, since most requests ask for the same few things. */
const matchingIn = () => {
  let of: readonly FleetEntry[] | undefined;
  const kept = new Map<string, readonly FleetEntry[]>();
  return (entries: readonly FleetEntry[], wanted: Wanted): readonly FleetEntry[] => {
    if (entries !== of || kept.size >= KEPT_REQUESTS) kept.clear();
    of = entries;
    const key = JSON.stringify(wanted);
    const found = kept.get(key) ?? entries.filter(({ gate }) => matchesGate(gate, wanted));
    kept.set(key, found);
    return found;
  };
};

export const makeSelection = (options: SelectionOptions): Selection => {
  const { fleet, commits, leases, time, clock, ids, log } = options;
  const ours = isOurs(options.namespaces);
  const fullness = makeFullness();
  const matching = matchingIn();
  const freeNow = shared(() => leases.free(time.now()));

  /** Lazily, so that no more proxies are looked at than it takes. */
  function* choices(entries: readonly FleetEntry[], { exclude }: LeaseRequest): Generator<Choice> {
    const now = time.now();
    for (const entry of entries) {
      const { uid } = entry.gate.proxy.ref;
      if (exclude.has(uid)) continue;
      const choice = choiceOf(entry, commits.known(uid), now);
      yield choice.stored ? choice : { ...choice, freeAt: fullness.freeAt(uid) };
    }
  }

  const submissionFor = (uid: string, request: LeaseRequest, mayYield: boolean): Submission => {
    const { holder, caller, ttlSeconds, entry } = request;
    const id = `${uid}.${ids.token()}`;
    return {
      operation: { kind: 'acquire', id, holder, caller, ttlSeconds },
      mayYield,
      ...(entry ? { entry: { ...entry, leaseId: id } } : {}),
    };
  };

  const tryEach = async (candidates: readonly Choice[], request: LeaseRequest, until: number) => {
    for (const [index, { uid, stored }] of candidates.entries()) {
      if (clock.monotonic() > until) return undefined;
      const submission = submissionFor(uid, request, index + 1 < candidates.length);
      const outcome = await commits.submit(uid, submission, stored);
      fullness.note(uid, outcome);
      if (outcome.kind === 'granted' || outcome.kind === 'replay') return outcome;
    }
    return undefined;
  };

  return {
    async grant(request) {
      const until = clock.monotonic() + DEADLINE_MS;
      const known = matching(await fleet.recent(CHOICE_AGE_MS), request.wanted);
      const best = candidatesInOrder(choices(known, request), time.now());
      const first = await tryEach(best.slice(0, TRIES), request, until);
      if (first) return first;
      // Those that others filled meanwhile must not hide the ones that are free.
      const free = readable(await freeNow(), log).filter(({ document }) => ours(document.gate));
      const exact = free.filter(({ document }) => matchesGate(document.gate, request.wanted)).map(entryOf);
      return tryEach(inOrder([...choices(exact, request)]), request, until);
    },

    async refusal(request) {
      const known = matching(await fleet.recent(REFUSAL_AGE_MS), request.wanted);
      // "Nothing matches" must not come from a picture that a new Proxy is not in yet.
      const published = known.length > 0 ? known : matching(await fleet.fresh(), request.wanted);
      const all = published.length > 0 ? published : matching(await fleet.unpublished(), request.wanted);
      const acceptable = [...choices(all, request)];
      const excluded = all.filter(({ gate }) => request.exclude.has(gate.proxy.ref.uid));
      return {
        matching: all.length,
        counts: refusalCounts([...acceptable, ...excluded], request.exclude),
        retryAfterSeconds: retryAfterSeconds(acceptable, time.now()),
      };
    },
  };
};
