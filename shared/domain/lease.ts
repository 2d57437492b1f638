/** The lease document `leases/{uid}`: the gate and the live leases of one proxy. All times are server milliseconds. */

import type { EndpointScheme } from './endpoint.ts';
import type { Gate } from './gate.ts';

/** `id` is `{uid}.{128 random bits in hex}`: unguessable, and it names its document. */
export interface Lease {
  readonly id: string;
  readonly endpoint: {
    readonly id: string;
    readonly host: string;
    readonly port: number;
    readonly scheme: EndpointScheme;
  };
  readonly holder: string;
  /** The caller's identity as the platform proved it; empty when there was none. */
  readonly caller: string;
  readonly fence: number;
  readonly grantedAt: number;
  readonly expiresAt: number;
  readonly ttlSeconds: number;
  readonly report?: { readonly outcome: ReportOutcome; readonly at: number; readonly target?: string };
}

export const REPORT_OUTCOMES = ['ok', 'failed', 'blocked', 'slow'] as const;
export type ReportOutcome = (typeof REPORT_OUTCOMES)[number];

export const END_REASONS = ['Released', 'Expired', 'EndpointGone', 'Drained'] as const;
export type EndReason = (typeof END_REASONS)[number];

export interface LeaseDocument {
  readonly gate: Gate;
  /** 0 = a slot is free now; else the moment from which one may be. Set by lease operations, reset to 0 with the gate. */
  readonly freeAt: number;
  /** Live leases by the random part of their id. */
  readonly leases: Readonly<Record<string, Lease>>;
  /** The last ended leases, newest first, so that a late renew learns the true reason. */
  readonly ended: readonly { readonly id: string; readonly reason: EndReason; readonly at: number }[];
  /** The last fencing token given out; only grows, across deletion and re-creation too. */
  readonly fence: number;
  /** sha256 of caller and holder of each live lease: the one indexed array. */
  readonly holders: readonly string[];
}
