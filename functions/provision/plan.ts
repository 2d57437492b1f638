/** What provision knows of a Proxy (the observation) and what it does about it (the plan): plain data, both. */

import type { Condition, Finding, Reason } from '#shared/domain/conditions.ts';
import type { Desired } from '#shared/domain/desired.ts';
import type { EndpointScheme } from '#shared/domain/endpoint.ts';
import type { FailureBehaviour, Leftover, Machine, OperationRef } from '#shared/domain/machine.ts';
import type { ProviderName, ProxyRef } from '#shared/domain/proxy.ts';
import type { ProxyRecord, PublishedPlace } from '#shared/domain/record.ts';

/** The status of a Proxy as this controller reads and writes it: the CRD's, with known condition types only. */
export interface Status {
  readonly observedGeneration?: number;
  readonly observed?: {
    readonly generation?: number;
    readonly labelsHash?: string;
    readonly secretVersions?: Readonly<Record<string, string>>;
  };
  readonly installation?: string;
  readonly provider?: ProviderName;
  readonly host?: string;
  readonly ip?: string;
  readonly port?: number;
  readonly scheme?: EndpointScheme;
  readonly zone?: string;
  readonly providerID?: string;
  readonly exitAddress?: string;
  readonly replacement?: {
    readonly providerID?: string;
    readonly zone?: string;
    readonly reason?: string;
    readonly since?: string;
  };
  readonly conditions?: readonly Condition[];
}

export interface ProxyFacts {
  readonly generation: number;
  readonly labelsHash: string;
  readonly deleting: boolean;
  readonly hasFinalizer: boolean;
  readonly status: Status;
  readonly desired: Desired;
}

/** Why Secrets cannot be used. `judged` is false when they could not be read at all: then nothing is known of the spec. */
export interface InputTrouble {
  readonly kind: 'trouble';
  readonly reason: Reason<'Provisioned'>;
  readonly message: string;
  readonly judged: boolean;
}

/** The resolved inputs of a machine, as digests. `hash` is that of everything replace-worthy. */
export type Inputs =
  | {
      readonly kind: 'resolved';
      readonly hash: string;
      readonly credentialsVersion: string;
      readonly secretVersions: Readonly<Record<string, string>>;
    }
  | (InputTrouble & { readonly secretVersions: Readonly<Record<string, string>> });

/**
 * One live read of a name in a zone. `untouched`: nothing was ever asked for there, or it was refused outright. `inFlight`:
 * this call's create operation runs. `absentOnce` and `absentTwice`: plainly not found, the second time seconds later;
 * `leftover`: so is the machine, but not what it left behind. `unseen`: the provider did not say.
 */
export type Sighting =
  | { readonly zone: string; readonly kind: 'machine'; readonly machine: Machine }
  | { readonly zone: string; readonly kind: 'leftover'; readonly leftover: Leftover }
  | {
      readonly zone: string;
      readonly kind: 'untouched' | 'inFlight' | 'absentOnce' | 'absentTwice' | 'unseen';
    };

/** The machines of a record as the provider shows them, by name. `trouble`: why some of them could not be seen. */
export type Fleet =
  | {
      readonly kind: 'seen';
      readonly machines: Readonly<Record<string, readonly Sighting[]>>;
      readonly trouble?: { readonly transient: boolean; readonly message: string };
    }
  | { readonly kind: 'notConfigured' };

export interface PendingOperation {
  readonly kind: 'create' | 'delete' | 'start';
  readonly machine: string;
  readonly operation: OperationRef;
}

/** A call to the provider that was refused since the last plan. */
export interface Refusal {
  readonly kind: 'create' | 'delete' | 'start';
  readonly machine: string;
  readonly zone: string;
  readonly behaviour: FailureBehaviour | 'Unauthorised';
  readonly code: string;
  readonly message: string;
  /** Zones that the provider named as having what this one lacks. */
  readonly zones?: readonly string[];
  /** It was the first create call ever in this zone, and was refused outright: nothing can be there. */
  readonly leftNothing?: boolean;
}

/** The queue of replacements before this one, and the share of the fleet that may be replaced at once. */
export interface Turn {
  readonly ahead: number;
  /** Those that are stuck on the very machine that is wanted here. */
  readonly stuck: number;
  readonly fleet: number;
  readonly percent: number;
  readonly oldest?: string;
}

export interface Observation {
  readonly ref: ProxyRef;
  readonly installation: string;
  readonly allowPrivateEndpoints: boolean;
  /** Absent: there is no Proxy with this uid. */
  readonly proxy?: ProxyFacts;
  readonly record?: ProxyRecord;
  /** Set when the cluster that knows no such Proxy is not the `remembered` one. */
  readonly elsewhere?: { readonly id: string; readonly remembered: string };
  /** Absent where nothing depends on them: no Proxy, or one that is being deleted. */
  readonly inputs?: Inputs;
  readonly fleet: Fleet;
  /** Operations of this call that have not ended. */
  readonly pending: readonly PendingOperation[];
  /** Names of operations that have ended, well or not. */
  readonly ended: readonly string[];
  readonly refusals: readonly Refusal[];
  /** When the delete call of a machine, or of what it left, was accepted in this call, by the provider's id. */
  readonly deletesSent: Readonly<Record<string, number>>;
  /** Live leases by endpoint id; `lastExpiry` in milliseconds. Read while something drains. */
  readonly leases: Readonly<Record<string, { readonly count: number; readonly lastExpiry: number }>>;
  /** Endpoints of other Proxies' machines on hosts that are, or were, published here too. Read while there are any. */
  readonly rivals?: readonly PublishedPlace[];
  /** Read while a replacement waits for its turn. */
  readonly turn?: Turn;
  /** What carries the UID of this Proxy. Looked for where its record was lost, or is said to lack a machine. */
  readonly forgotten?: {
    readonly machines: readonly Machine[];
    readonly credentials: readonly string[];
    readonly leases: boolean;
  };
  /** An unused endpoint id. */
  readonly freshId: string;
  /** Uniform in [0, 1), to spread retries. */
  readonly jitter: number;
}

/** In the order in which a plan may hold them; each can be repeated without harm. */
export type Step =
  | { readonly kind: 'addFinalizer' }
  | { readonly kind: 'writeRecord'; readonly record: ProxyRecord }
  | { readonly kind: 'storeCredentials'; readonly endpointId: string }
  | { readonly kind: 'removeCredentials'; readonly endpointIds: readonly string[] }
  | { readonly kind: 'removeLeases' }
  | { readonly kind: 'createMachine'; readonly name: string; readonly hash: string; readonly zone: string }
  | { readonly kind: 'startMachine'; readonly machine: Machine }
  | { readonly kind: 'deleteMachine'; readonly machine: Machine }
  | { readonly kind: 'deleteLeftover'; readonly leftover: Leftover }
  | { readonly kind: 'requestProbe' }
  | { readonly kind: 'removeFinalizer' };

/** What follows a pass. Nothing set = the end: everything open has its `wakeAt` in the record. */
export interface Next {
  /** Look and judge again at once. */
  readonly again?: boolean;
  /** The provider is away: refuse the message, so that it comes back. */
  readonly retry?: boolean;
  /** Look again when one of these has ended. */
  readonly operations?: readonly PendingOperation[];
  /** Look again after so many milliseconds. */
  readonly pauseMs?: number;
}

export interface ProxyEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

export interface Plan {
  /** The check that won, for logs. */
  readonly because: string;
  readonly steps: readonly Step[];
  /** Absent: the status is right as it is, or not for us to write. */
  readonly status?: Status;
  readonly events: readonly ProxyEvent[];
  readonly next: Next;
}

/** What one check found. */
export interface Outcome {
  readonly because: string;
  /** The record to be; written when it differs from the stored one. */
  readonly record?: ProxyRecord;
  readonly before?: readonly Step[];
  readonly after?: readonly Step[];
  /** Absent: the conditions stay as they are. */
  readonly provisioned?: Finding<'Provisioned'>;
  /** Nothing changes until a person acts. */
  readonly stalled?: boolean;
  /** False: this generation's spec has not been judged. */
  readonly judged?: boolean;
  /** The new machine will not serve as things are. */
  readonly blocked?: boolean;
  /** When somebody must look again at the latest (ms), and why. Absent: converged. */
  readonly wake?: { readonly at: number; readonly reason: string };
  readonly next: Next;
}
