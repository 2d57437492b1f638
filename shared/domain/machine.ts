/** The port to machine providers: what `provision` and `gc` ask of a cloud, in terms that every cloud has. */

import type { ManagedProvider, ProxyRef } from './proxy.ts';

/** `unknown` is a state that the provider has and we do not know: nothing is concluded from it. */
export type MachineState =
  'creating' | 'running' | 'stopping' | 'stopped' | 'suspended' | 'repairing' | 'failed' | 'unknown';

/** A machine as the provider shows it now. */
export interface Machine {
  readonly name: string;
  /** Where its name is unique: gcp's zone, the namespace of a Pod. */
  readonly zone: string;
  /** The provider's unique id: two machines never share one, even under one name. */
  readonly instanceId: string;
  /** `gce://project/zone/name` or `pod://namespace/name`. */
  readonly providerID: string;
  readonly state: MachineState;
  /** The address that clients connect to; absent while there is none. */
  readonly address?: string;
  /** Who made it, as its labels say; absent where a label is missing. */
  readonly installation?: string;
  readonly uid?: string;
  readonly hash?: string;
  /** Milliseconds; undefined when the provider's time could not be read. */
  readonly createdAt?: number;
  /** Why it is not running, in the provider's words. */
  readonly detail?: string;
}

/** What a machine left behind when it went: it costs money, and holds the name. With gcp its boot disk. */
export interface Leftover {
  readonly name: string;
  readonly zone: string;
  /** The provider's unique id. */
  readonly id: string;
  /** Whose it is, as its labels say; absent where a label is missing. */
  readonly installation?: string;
  readonly uid?: string;
  /** Milliseconds; undefined when the provider's time could not be read. */
  readonly createdAt?: number;
}

/** What a machine is made from, Secrets resolved. Never logged, stored or put into a message. */
export interface MachineSpec {
  readonly ref: ProxyRef;
  readonly name: string;
  readonly hash: string;
  readonly port: number;
  readonly userData?: string;
  readonly credentials?: { readonly username: string; readonly password: string };
  readonly gcp?: {
    readonly machineType: string;
    readonly image: string;
    readonly subnetwork: string;
    readonly externalIP: 'Ephemeral' | 'None';
    readonly provisioningModel: 'Standard' | 'Spot';
  };
  readonly kubernetes?: {
    readonly image: string;
    readonly args?: readonly string[];
    readonly resources?: {
      readonly requests?: Readonly<Record<string, number | string>>;
      readonly limits?: Readonly<Record<string, number | string>>;
    };
    readonly nodeSelector?: Readonly<Record<string, string>>;
    readonly tolerations?: readonly Toleration[];
  };
}

/** A taint of nodes that a Pod puts up with, as Kubernetes writes it. */
export interface Toleration {
  readonly key?: string;
  readonly operator?: 'Equal' | 'Exists';
  readonly value?: string;
  readonly effect?: 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute';
  readonly tolerationSeconds?: number;
}

/** A running operation at the provider. */
export interface OperationRef {
  readonly zone: string;
  readonly name: string;
}

/** The end of an operation. A failed one carries the provider's own code and text. */
export type OperationResult =
  | { readonly kind: 'succeeded' }
  | { readonly kind: 'running' }
  | { readonly kind: 'unknown' }
  | {
      readonly kind: 'failed';
      readonly behaviour: FailureBehaviour;
      readonly code: string;
      readonly message: string;
      /** Zones that the provider names as having what this one lacks. */
      readonly zones?: readonly string[];
    };

/** What a provider's refusal asks of us: another zone, patience, a person, or a retry. */
export type FailureBehaviour =
  'CapacityUnavailable' | 'QuotaExceeded' | 'InvalidSpec' | 'Conflict' | 'Transient';

/** How much a list shows: the zones that could not be seen are unknown, never empty. */
export interface Coverage {
  readonly unknownZones: readonly string[];
  /** True when even the list of zones is not complete: nothing may be concluded from absence. */
  readonly partial: boolean;
}

/** All machines of this installation. */
export interface FleetListing extends Coverage {
  readonly machines: readonly Machine[];
}

/** Everything that machines of this installation left behind and nothing uses. */
export interface LeftoverListing extends Coverage {
  readonly leftovers: readonly Leftover[];
}

/**
 * One provider. Calls throw a `SystemError` whose code names the behaviour; absence that the provider states plainly is
 * `undefined`, an outage never is.
 */
export interface MachineProvider {
  readonly name: ManagedProvider;
  /** One live read by name and zone; `undefined` only for a plain "not found". */
  get(name: string, zone: string): Promise<Machine | undefined>;
  /** Sends one create call with identity in it. An existing name throws `Conflict`: read it and adopt it or leave it. */
  create(spec: MachineSpec, zone: string, requestId: string): Promise<OperationRef>;
  /** Sends one delete call for exactly this machine; a machine that is gone already resolves to `undefined`. */
  delete(machine: Machine): Promise<OperationRef | undefined>;
  /** What the machine of this name left behind and nothing uses, once it is gone itself; `undefined` for nothing. */
  leftover(name: string, zone: string): Promise<Leftover | undefined>;
  /** Sends one delete call for exactly this leftover; one that is gone already, or used again, resolves to `undefined`. */
  deleteLeftover(leftover: Leftover): Promise<OperationRef | undefined>;
  /** Starts a stopped machine again. */
  start(machine: Machine): Promise<OperationRef>;
  /** Waits until the operation has ended or `signal` aborts (then `running`). */
  wait(operation: OperationRef, signal: AbortSignal): Promise<OperationResult>;
  /** Every machine that carries this installation's identity, and the UID where one is given, in all zones, all pages. */
  list(uid?: string): Promise<FleetListing>;
  /** The same for what machines left behind and nothing uses. */
  listLeftovers(): Promise<LeftoverListing>;
  close(): Promise<void>;
}
