/**
 * The rules of leases: what each operation makes of a lease document. Pure; `now` is the server's clock in milliseconds, or
 * a lower bound of it. An operation that changes nothing returns the document that it was given, so that nothing is written.
 */

import type { ClosedReason } from './gate.ts';
import type { EndReason, Lease, LeaseDocument, ReportOutcome } from './lease.ts';
import { REUSE_AFTER_MS, freeAtOf, leasable, leasesOn, standing, type LeaseState } from './lease-standing.ts';

/** Ended leases that are remembered with their reasons. */
export const ENDED_KEPT = 50;

export type LeaseOperation =
  | {
      readonly kind: 'acquire';
      readonly id: string;
      readonly holder: string;
      readonly caller: string;
      readonly ttlSeconds: number;
    }
  | {
      readonly kind: 'renew';
      readonly id: string;
      readonly caller: string;
      readonly ttlSeconds: number | undefined;
    }
  | { readonly kind: 'release'; readonly id: string; readonly caller: string }
  | {
      readonly kind: 'report';
      readonly id: string;
      readonly caller: string;
      readonly outcome: ReportOutcome;
      readonly target: string | undefined;
    };

interface Held<K> {
  readonly kind: K;
  readonly lease: Lease;
  readonly state: LeaseState;
}

export type LeaseOutcome =
  | Held<'granted'>
  | Held<'renewed'>
  | Held<'reported'>
  | { readonly kind: 'released' }
  | { readonly kind: 'full'; readonly freeAt: number }
  | { readonly kind: 'closed'; readonly reason: ClosedReason }
  /** `Unknown`: not among the live leases nor the last ended ones, or another caller's. */
  | { readonly kind: 'ended'; readonly reason: EndReason | 'Unknown' };

export interface Judgement {
  readonly document: LeaseDocument;
  readonly outcome: LeaseOutcome;
}

/** The key of a lease in its document: the random part of its id. */
export const leaseKey = (id: string): string => id.slice(id.lastIndexOf('.') + 1);

const LEASE_ID = /^([0-9a-zA-Z-]{1,64})\.[0-9a-f]{32}$/;

/** The UID of the proxy that a lease id names; `undefined` when it is no lease id. */
export const uidOfLease = (id: string): string | undefined => LEASE_ID.exec(id)?.[1];

const findLease = (document: LeaseDocument, id: string): Lease | undefined => {
  const key = leaseKey(id);
  const lease = Object.hasOwn(document.leases, key) ? document.leases[key] : undefined;
  return lease?.id === id ? lease : undefined;
};

/** Whether a lease was ever granted under this id, as far as the document remembers. */
export const hasLease = (document: LeaseDocument, id: string): boolean =>
  findLease(document, id) !== undefined || document.ended.some((entry) => entry.id === id);

type Ended = LeaseDocument['ended'];

const withLeases = (
  document: LeaseDocument,
  leases: LeaseDocument['leases'],
  ended: Ended,
): LeaseDocument => {
  const next = { ...document, leases, ended: ended.slice(0, ENDED_KEPT) };
  return { ...next, freeAt: freeAtOf(next) };
};

/** Drops what is over: done with every write, so that no expired lease keeps a slot. */
export const expire = (document: LeaseDocument, now: number): LeaseDocument => {
  const ended: { id: string; reason: EndReason; at: number }[] = [];
  const kept = Object.entries(document.leases).filter(([, lease]) => {
    const found = standing(document, lease, now);
    if (found.kind === 'live') return true;
    if (found.reason === 'Expired' && now < lease.expiresAt + REUSE_AFTER_MS) return true;
    ended.push({ id: lease.id, reason: found.reason, at: now });
    return false;
  });
  return ended.length === 0
    ? document
    : withLeases(document, Object.fromEntries(kept), [...ended, ...document.ended]);
};

const endedReason = (document: LeaseDocument, id: string): EndReason | 'Unknown' =>
  document.ended.find((entry) => entry.id === id)?.reason ?? 'Unknown';

const put = (document: LeaseDocument, lease: Lease): LeaseDocument =>
  withLeases(document, { ...document.leases, [leaseKey(lease.id)]: lease }, document.ended);

type Operation<K extends LeaseOperation['kind']> = Extract<LeaseOperation, { kind: K }>;

/** A lease found under an id that was chosen before its write was granted by that write, whatever the write's reply was. */
const granted = (document: LeaseDocument, lease: Lease, now: number): Judgement => {
  const found = standing(document, lease, now);
  return {
    document,
    outcome: found.kind === 'live' ? { kind: 'granted', lease, state: found.state } : found,
  };
};

const acquire = (given: LeaseDocument, request: Operation<'acquire'>, now: number): Judgement => {
  const known = findLease(given, request.id);
  if (known) return granted(given, known, now);
  const before = endedReason(given, request.id);
  if (before !== 'Unknown') return { document: given, outcome: { kind: 'ended', reason: before } };

  const endpoint = leasable(given);
  if (!endpoint) {
    return { document: given, outcome: { kind: 'closed', reason: given.gate.closedReason ?? 'NoEndpoint' } };
  }
  const document = expire(given, now);
  if (leasesOn(document, endpoint.id, now).length >= document.gate.maxLeases) {
    const freeAt = freeAtOf(document);
    // A gate that was written anew claims a free slot until somebody looks.
    const isWrong = given.freeAt <= now && now < freeAt;
    return { document: isWrong ? { ...given, freeAt } : given, outcome: { kind: 'full', freeAt } };
  }
  const fence = Math.max(document.fence + 1, Math.floor(now));
  const { id, host, port, scheme } = endpoint;
  const lease: Lease = {
    id: request.id,
    endpoint: { id, host, port, scheme },
    holder: request.holder,
    caller: request.caller,
    fence,
    grantedAt: now,
    expiresAt: now + request.ttlSeconds * 1_000,
    ttlSeconds: request.ttlSeconds,
  };
  return granted({ ...put(document, lease), fence }, lease, now);
};

/** The caller's own lease if it is live at `now`, else why it is not. */
export const findLive = (
  document: LeaseDocument,
  { id, caller }: { readonly id: string; readonly caller: string },
  now: number,
): Held<'live'> | Extract<LeaseOutcome, { kind: 'ended' }> => {
  const lease = findLease(document, id);
  if (!lease) return { kind: 'ended', reason: endedReason(document, id) };
  if (lease.caller !== caller) return { kind: 'ended', reason: 'Unknown' };
  const found = standing(document, lease, now);
  if (found.kind === 'ended') return found;
  return { kind: 'live', state: found.state, lease: { ...lease, expiresAt: found.expiresAt } };
};

const renew = (document: LeaseDocument, request: Operation<'renew'>, now: number): Judgement => {
  const found = findLive(document, request, now);
  if (found.kind === 'ended') return { document, outcome: found };
  const ttlSeconds = request.ttlSeconds ?? found.lease.ttlSeconds;
  const wanted = { ...found.lease, ttlSeconds, expiresAt: now + ttlSeconds * 1_000 };
  const after = standing(document, wanted, now);
  const lease = after.kind === 'live' ? { ...wanted, expiresAt: after.expiresAt } : wanted;
  return {
    document: put(expire(document, now), lease),
    outcome: { kind: 'renewed', lease, state: found.state },
  };
};

const release = (document: LeaseDocument, request: Operation<'release'>, now: number): Judgement => {
  const lease = findLease(document, request.id);
  if (!lease || lease.caller !== request.caller) {
    return { document, outcome: { kind: 'ended', reason: endedReason(document, request.id) } };
  }
  const { [leaseKey(request.id)]: _released, ...rest } = document.leases;
  const ended = [{ id: lease.id, reason: 'Released' as const, at: now }, ...document.ended];
  return { document: expire(withLeases(document, rest, ended), now), outcome: { kind: 'released' } };
};

const report = (document: LeaseDocument, request: Operation<'report'>, now: number): Judgement => {
  const found = findLive(document, request, now);
  if (found.kind === 'ended') return { document, outcome: found };
  const { outcome, target } = request;
  const lease: Lease = {
    ...found.lease,
    report: { outcome, at: now, ...(target === undefined ? {} : { target }) },
  };
  return {
    document: put(expire(document, now), lease),
    outcome: { kind: 'reported', lease, state: found.state },
  };
};

/**
 * Applies one operation. Applied again to what came of it, it is granted, renewed or released again, so that a lost reply
 * does no harm.
 */
export const applyOperation = (
  document: LeaseDocument,
  operation: LeaseOperation,
  now: number,
): Judgement => {
  if (operation.kind === 'acquire') return acquire(document, operation, now);
  if (operation.kind === 'renew') return renew(document, operation, now);
  if (operation.kind === 'release') return release(document, operation, now);
  return report(document, operation, now);
};
