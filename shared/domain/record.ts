/** The record `proxies/{uid}`: what is published, what was asked of the cloud, and when somebody must look again. */

import type { Endpoint } from './endpoint.ts';
import type { FailureBehaviour } from './machine.ts';
import type { HealthCheck, ProviderName, ProxyRef } from './proxy.ts';
import type { Verdict } from './verdict.ts';

/** The newest refusal of a create call, in the provider's words, and when it may be asked again. Milliseconds. */
export interface MachineFailure {
  readonly behaviour: FailureBehaviour | 'Unauthorised';
  readonly code: string;
  readonly message: string;
  /** Refusals in a row. */
  readonly count: number;
  readonly retryAt: number;
  /** Zones that the provider named as having what this one lacks. */
  readonly zones?: readonly string[];
}

/** A machine that did not stay. `count` losses in a row; not before `notBefore` (ms) is the next one asked for. */
export interface Loss {
  readonly reason: 'MachineGone' | 'MachineStopped';
  readonly message: string;
  readonly count: number;
  readonly notBefore: number;
}

/**
 * A machine that was, or may have been, asked of the provider. Written before the first create call, so that no crash can
 * leave a machine that nobody knows of.
 */
export interface MachineIntent {
  readonly name: string;
  readonly hash: string;
  readonly incarnation: number;
  /** Every zone in which a create call may have been sent, in that order. */
  readonly zones: readonly string[];
  /** The provider's unique id, once the machine was seen; another id under the same name is another machine. */
  readonly instanceId?: string;
  /** Set when a delete call was accepted; from then on the machine is only watched. Milliseconds. */
  readonly deleteRequestedAt?: number;
  /** The newest create operation, for a pass that comes after a crash or a long wait. */
  readonly operation?: { readonly zone: string; readonly name: string; readonly startedAt: number };
  /** When the newest of `zones` was recorded, just before its create call. Milliseconds. */
  readonly askedAt?: number;
  readonly failure?: MachineFailure;
  /** Zones that refused for lack of capacity, and when they may be asked again. Milliseconds. */
  readonly exhausted?: Readonly<Record<string, number>>;
  /** The machine that was lost before this one was made, and why. */
  readonly insteadOf?: Loss;
  /** Its endpoint at `host`, published `at` (ms), gave way to a newer one of another Proxy at the same place. */
  readonly yielded?: { readonly host: string; readonly at: number };
}

/** An endpoint with its own verdict and, for managed ones, the machine behind it. */
export interface Publication {
  readonly endpoint: Endpoint;
  readonly verdict: Verdict;
  readonly publishedAt: number;
  /** `MachineIntent.name`; absent for External. */
  readonly machine?: string;
  /** Absent where the provider has no zones. */
  readonly zone?: string;
  readonly providerID?: string;
  /** True where the exit address must be the machine's own (gcp with an ephemeral address). */
  readonly ownExit?: boolean;
}

/** An endpoint that takes no new lease and goes when its leases have ended, `until` (ms) at the latest. */
export interface DrainingPublication extends Publication {
  readonly until: number;
}

export interface ProxyRecord {
  readonly ref: ProxyRef;
  readonly installation: string;
  readonly provider: ProviderName;
  /** Generation of the Proxy whose spec the fields below repeat. */
  readonly generation: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly maxLeases: number;
  readonly cordoned: boolean;
  readonly deleting: boolean;
  readonly drainTimeoutSeconds: number;
  readonly healthCheck: HealthCheck;
  /** The endpoint that leases are granted on. */
  readonly serving?: Publication;
  /** The endpoint that is to replace it once it is healthy. */
  readonly candidate?: Publication;
  readonly draining: readonly DrainingPublication[];
  readonly machines: readonly MachineIntent[];
  /** The highest incarnation that was ever recorded; never falls. */
  readonly incarnation: number;
  /** Ids of endpoints under which credentials are, or may be, stored; recorded before they are written. */
  readonly credentials?: readonly string[];
  /**
   * Its place in the queue of replacements, `at` (ms) being when it asked; `granted` once its turn has come. Kept until the new
   * machine is healthy. `hash` is that of the machine it wants. `stuck`: that one does not get to serve while the old one
   * does, so that only those that want the very same wait for it. `held`: it is one of those, and in nobody's way itself.
   */
  readonly replacement?: {
    readonly at: number;
    readonly granted: boolean;
    readonly hash?: string;
    readonly stuck?: boolean;
    readonly held?: boolean;
  };
  /** When gc must nudge `provision` at the latest; absent = converged. Milliseconds. */
  readonly wakeAt?: number;
  /** Why the record waits, for people. */
  readonly wakeReason?: string;
  /** `traceparent` of the change that the Proxy is converging on, so that whoever goes on with it later goes on in its trace. */
  readonly traceparent?: string;
  /** A tombstone: the Proxy is gone, nothing is published. */
  readonly gone: boolean;
}

/** Every published endpoint of a record: what health probes and what gc compares with machines. */
export const publications = (record: ProxyRecord): readonly Publication[] => [
  ...(record.serving ? [record.serving] : []),
  ...(record.candidate ? [record.candidate] : []),
  ...record.draining,
];

/** Where a machine's endpoint was published, by whom, and when (ms). */
export interface PublishedPlace {
  readonly ref: ProxyRef;
  readonly host: string;
  readonly port: number;
  readonly publishedAt: number;
}

/** Where the machines of a record answer, as published. Only gcp gives an address to another machine behind our back. */
export const placesOf = (record: ProxyRecord): readonly PublishedPlace[] =>
  record.provider === 'gcp'
    ? publications(record).map(({ endpoint: { host, port }, publishedAt }) => ({
        ref: record.ref,
        host,
        port,
        publishedAt,
      }))
    : [];

type Claim = Pick<PublishedPlace, 'ref' | 'publishedAt'>;

/** Of two Proxies at one place, whether `a` was published there later; everybody who compares them finds the same. */
export const isNewer = (a: Claim, b: Claim): boolean =>
  a.publishedAt > b.publishedAt || (a.publishedAt === b.publishedAt && a.ref.uid > b.ref.uid);
