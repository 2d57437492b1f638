/** What the stand-in remembers: resources, policies, operations, and which APIs the project has. */

export type Resource = Readonly<Record<string, unknown>>;

export interface Operation {
  /** As its API names it, without the version. */
  readonly name: string;
  readonly kind: string;
  readonly target: string;
  done: boolean;
  response: Resource;
  /** The work, which gives the response. */
  readonly finish: () => Resource;
}

export interface Binding {
  readonly role: string;
  readonly members: readonly string[];
  readonly condition?: Resource | undefined;
}

export interface Policy {
  readonly version: number;
  readonly bindings: readonly Binding[];
  readonly etag: string;
}

export interface World {
  readonly projectId: string;
  readonly projectNumber: string;
  /** `127.0.0.1:<port>` of the emulator that holds topics and subscriptions. */
  readonly pubsubHost: string;
  /** By the name of the API and the path below its version: `compute/projects/p/global/networks/default`. */
  readonly resources: Map<string, Resource>;
  /** By the same keys as `resources`. */
  readonly policies: Map<string, Policy>;
  readonly operations: Map<string, Operation>;
  /** Services that are enabled, such as `run.googleapis.com`. */
  readonly enabled: Set<string>;
  /** A number that nobody had before. */
  next(): number;
}

export type WorldOptions = Pick<World, 'projectId' | 'pubsubHost'>;

export const makeWorld = (options: WorldOptions): World => {
  let last = 1000;
  return {
    ...options,
    projectNumber: '123456789012',
    resources: new Map(),
    policies: new Map(),
    operations: new Map(),
    enabled: new Set(),
    next: () => (last += 1),
  };
};
