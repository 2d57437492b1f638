/** Which proxies an acquire tries, in which order, and what a refusal says. */

import type { Gate } from '#shared/domain/gate.ts';
import { leasable } from '#shared/domain/lease-rules.ts';
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
}

export const matchesGate = ({ proxy }: Gate, wanted: Wanted): boolean =>
  (wanted.namespace === undefined || proxy.ref.namespace === wanted.namespace) &&
  (wanted.zone === undefined || proxy.zone === wanted.zone) &&
  (wanted.provider === undefined || proxy.provider === wanted.provider) &&
  (wanted.proxy === undefined ||
    (proxy.ref.namespace === wanted.proxy.namespace && proxy.ref.name === wanted.proxy.name)) &&
  matches(wanted.selector, proxy.labels);

/** Candidates that are compared with each other; more would cost time and spread no better. */
const SAMPLE = 32;

const hasRoom = ({ gate, freeAt, load }: Candidate, now: number): boolean =>
  leasable({ gate }) !== undefined && freeAt <= now && load < gate.maxLeases;

/**
 * Proxies to try, best first: those with room, the least loaded first, from a window that starts at a random place so that
 * neither requests nor instances crowd on the same ones. `fraction` is uniform in [0, 1).
 */
export const candidatesInOrder = <C extends Candidate>(
  matching: readonly C[],
  now: number,
  fraction: number,
): readonly C[] => {
  const free = matching.filter((candidate) => hasRoom(candidate, now));
  const start = Math.floor(fraction * free.length);
  const sample = [...free.slice(start), ...free.slice(0, start)].slice(0, SAMPLE);
  return sample.toSorted((a, b) => a.load / a.gate.maxLeases - b.load / b.gate.maxLeases);
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
