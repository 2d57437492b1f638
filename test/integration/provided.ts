/** What the services of an integration run hand to the tests: `inject('cluster')` and `inject('emulators')`. */

export interface ProvidedCluster {
  readonly server: string;
  /** PEM file of the server's authority. */
  readonly caFile: string;
  /** Paths by identity; `admin` may do everything, the others what terraform/cluster/rbac.yaml gives them. */
  readonly kubeconfigs: Readonly<Record<Identity, string>>;
  readonly tokens: Readonly<Record<Identity, string>>;
}

export interface ProvidedEmulators {
  /** `host:port`, for FIRESTORE_EMULATOR_HOST. */
  readonly firestore: string;
  /** `host:port`, for PUBSUB_EMULATOR_HOST. */
  readonly pubsub: string;
}

/** The functions' users in the cluster, named as in terraform/cluster/rbac.yaml. */
export const FUNCTION_IDENTITIES = ['watcher', 'provision', 'health', 'discovery', 'gc'] as const;

export type Identity = 'admin' | (typeof FUNCTION_IDENTITIES)[number];

declare module 'vitest' {
  interface ProvidedContext {
    cluster: ProvidedCluster;
    emulators: ProvidedEmulators;
  }
}
