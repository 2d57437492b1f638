/** What a lease is worth, and what is left to lease: of one document, at one moment of the server's clock. Pure. */

import type { Endpoint } from './endpoint.ts';
import type { ClosedReason } from './gate.ts';
import type { EndReason, Lease, LeaseDocument } from './lease.ts';

/** A slot is given to somebody else this long after its lease expired, so that no clock error makes two holders. */
export const REUSE_AFTER_MS = 1_000;

const NEVER = Number.MAX_SAFE_INTEGER;

export const LEASE_STATES = ['active', 'draining', 'cordoned', 'unhealthy'] as const;
export type LeaseState = (typeof LEASE_STATES)[number];

/** A lease as it stands; `expiresAt` is capped at the end of its endpoint's drain. */
export type Standing =
  | { readonly kind: 'live'; readonly state: LeaseState; readonly expiresAt: number }
  | { readonly kind: 'ended'; readonly reason: EndReason };

/** What a running lease is told when its endpoint takes no new ones. */
const STATE_OF: Readonly<Record<ClosedReason, LeaseState>> = {
  Cordoned: 'cordoned',
  Deleting: 'draining',
  Gone: 'draining',
  Unhealthy: 'unhealthy',
  NotYetHealthy: 'unhealthy',
  NoEndpoint: 'unhealthy',
};

/** What a lease is worth at `now`: its own expiry, and the endpoint that it is bound to. */
export const standing = ({ gate }: LeaseDocument, lease: Lease, now: number): Standing => {
  if (now >= lease.expiresAt) return { kind: 'ended', reason: 'Expired' };
  const drain = gate.draining.find(({ endpointId }) => endpointId === lease.endpoint.id);
  if (drain) {
    return now >= drain.until
      ? { kind: 'ended', reason: 'Drained' }
      : { kind: 'live', state: 'draining', expiresAt: Math.min(lease.expiresAt, drain.until) };
  }
  if (gate.endpoint?.id !== lease.endpoint.id) return { kind: 'ended', reason: 'EndpointGone' };
  const state = gate.closedReason ? STATE_OF[gate.closedReason] : 'active';
  return { kind: 'live', state, expiresAt: lease.expiresAt };
};

/** Live leases on one endpoint, those included whose slot cannot be reused yet. */
export const leasesOn = (document: LeaseDocument, endpointId: string, now: number): readonly Lease[] =>
  Object.values(document.leases).filter(
    (lease) => lease.endpoint.id === endpointId && now < lease.expiresAt + REUSE_AFTER_MS,
  );

/** The endpoint that a lease may be granted on now; `undefined` = none. */
export const leasable = ({ gate }: Pick<LeaseDocument, 'gate'>): Endpoint | undefined =>
  gate.open && gate.endpoint !== undefined && gate.endpoint.host !== '' ? gate.endpoint : undefined;

/** When a slot may be free: 0 = now, else the moment at which enough leases will have expired. */
export const freeAtOf = (document: LeaseDocument): number => {
  const endings = Object.values(document.leases)
    .filter(({ endpoint }) => endpoint.id === document.gate.endpoint?.id)
    .map(({ expiresAt }) => expiresAt + REUSE_AFTER_MS)
    .sort((a, b) => a - b);
  const surplus = endings.length - document.gate.maxLeases;
  return surplus < 0 ? 0 : (endings[surplus] ?? NEVER);
};
