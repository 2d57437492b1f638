/** Which proxies an acquire tries, in which order, and what a refusal says. */

import type { Gate } from '#shared/domain/gate.ts';
import { leasable } from '#shared/domain/lease-standing.ts';
import type { ProviderName } from '#shared/domain/proxy.ts';
import { matches, type Selector } from '#shared/domain/selector.ts';

/** What a caller asks for; an absent field asks for nothing. */
export interface Wanted {
  readonly selector: Selector;
  readonly namespace?: string | undefined;
  readonly zone?: string | undefined;
  readonly provider?: ProviderName | undefined;
  readonly proxy?: { readonly namespace: string; readonly name: string } | undefined;
}

/** A proxy as far as the instance knows it; `load` counts live leases and acquires that are on their way. */
export interface Candidate {
  readonly gate: Gate;
  readonly freeAt: number;
  readonly load: number;
  /** Another instance has written to it as well a short while ago. */
  readonly isContended?: boolean;
}

export const matchesGate = ({ proxy }: Gate, wanted: Wanted): boolean =>
  (wanted.namespace === undefined || proxy.ref.namespace === wanted.namespace) &&
  (wanted.zone === undefined || proxy.zone === wanted.zone) &&
  (wanted.provider === undefined || proxy.provider === wanted.provider) &&
  (wanted.proxy === undefined ||
    (proxy.ref.namespace === wanted.proxy.namespace && proxy.ref.name === wanted.proxy.name)) &&
  matches(wanted.selector, proxy.labels);

/** Candidates that are enough to stop looking for more. */
const ENOUGH = 32;

/**
 * Where a proxy stands in an instance's order: instances prefer different proxies, so that their writes seldom meet. FNV-1a,
 * 32 bits, with the finaliser of MurmurHash3.
 */
export const preference = (instance: string, uid: string): number => {
  let hash = 0x811c9dc5;
  for (const text of [instance, uid]) {
    for (let index = 0; index < text.length; index += 1) {
      hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
    }
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
};

const hasRoom = ({ gate, freeAt, load }: Candidate, now: number): boolean =>
  leasable({ gate }) !== undefined && freeAt <= now && load < gate.maxLeases;

/** How full it is, and a quarter more where another instance writes too. */
const weight = ({ load, gate, isContended }: Candidate): number =>
  load / gate.maxLeases + (isContended ? 0.25 : 0);

/** The least loaded first, in the given order among equals. */
export const inOrder = <C extends Candidate>(candidates: readonly C[]): readonly C[] =>
  candidates.toSorted((a, b) => weight(a) - weight(b));

/**
 * Proxies to try, best first: those with room, the least loaded first, in the given order among equals. No further ones are
 * looked at once enough idle ones are found.
 */
export const candidatesInOrder = <C extends Candidate>(matching: Iterable<C>, now: number): readonly C[] => {
  const free: C[] = [];
  let idle = 0;
  for (const candidate of matching) {
    if (!hasRoom(candidate, now)) continue;
    free.push(candidate);
    if (weight(candidate) === 0) idle += 1;
    if (idle === ENOUGH) break;
  }
  return inOrder(free).slice(0, ENOUGH);
};

/** Why each proxy that matches was not leased. */
export interface RefusalCounts {
  readonly full: number;
  readonly unhealthy: number;
  readonly draining: number;
  readonly cordoned: number;
  /** No address yet, or not yet probed. */
  readonly notReady: number;
  /** Named in the request's `exclude`. */
  readonly excluded: number;
}

const causeOf = (gate: Gate): keyof RefusalCounts => {
  if (leasable({ gate })) return 'full';
  if (gate.closedReason === 'Unhealthy') return 'unhealthy';
  if (gate.closedReason === 'Cordoned') return 'cordoned';
  if (gate.closedReason === 'Deleting') return 'draining';
  return 'notReady';
};

export const refusalCounts = (
  matching: readonly { readonly gate: Gate }[],
  exclude: ReadonlySet<string>,
): RefusalCounts => {
  const counts = { full: 0, unhealthy: 0, draining: 0, cordoned: 0, notReady: 0, excluded: 0 };
  for (const { gate } of matching) {
    counts[exclude.has(gate.proxy.ref.uid) ? 'excluded' : causeOf(gate)] += 1;
  }
  return counts;
};

const RETRY_MIN_SECONDS = 1;
const RETRY_MAX_SECONDS = 10;

/** When another try is worth it: with the next expiry, but soon enough for a release or a recovery. Seconds. */
export const retryAfterSeconds = (
  full: readonly { readonly gate: Gate; readonly freeAt: number }[],
  now: number,
): number => {
  const next = Math.min(...full.filter(({ gate }) => leasable({ gate })).map(({ freeAt }) => freeAt));
  const seconds = Number.isFinite(next) ? Math.ceil((next - now) / 1_000) : RETRY_MAX_SECONDS;
  return Math.min(RETRY_MAX_SECONDS, Math.max(RETRY_MIN_SECONDS, seconds));
};
