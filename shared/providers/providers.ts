/** The one place where providers are built: what stands in this map can be configured, and nothing else. */

import type { z } from 'zod';

import type { Clock } from '#shared/app/clock.ts';
import { fields } from '#shared/app/config.ts';
import type { Ids } from '#shared/app/ids.ts';
import type { Log } from '#shared/app/log.ts';
import { openComputeProvider } from '#shared/compute/provider.ts';
import type { MachineProvider } from '#shared/domain/machine.ts';
import type { ClusterOptions } from '#shared/kubernetes/configuration.ts';
import { openConnection } from '#shared/kubernetes/connection.ts';
import { openPodProvider } from '#shared/kubernetes/pods/provider.ts';

export interface ProviderOptions {
  readonly projectId: string;
  readonly installation: string;
  /** Where its Proxies are, and so its Pods: namespaces, or `*`. */
  readonly namespaces: readonly string[];
  readonly clusterOptions: ClusterOptions;
  /** Of a stand-in for Compute Engine; absent = the real API. */
  readonly endpoint?: string;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
}

const openPods = ({ clusterOptions, ...options }: ProviderOptions): MachineProvider =>
  openPodProvider(options, openConnection(clusterOptions, 'egress-proxies-pods'));

const CONSTRUCTORS = {
  gcp: openComputeProvider,
  kubernetes: openPods,
} as const satisfies Readonly<Record<string, (options: ProviderOptions) => MachineProvider>>;

export type Configured = keyof typeof CONSTRUCTORS;
export type Providers = Readonly<Partial<Record<Configured, MachineProvider>>>;

const isProvider = (name: string): name is Configured => Object.hasOwn(CONSTRUCTORS, name);

/** Keys of everyone who talks to providers; `PROVIDERS` is held against the map above. */
export const providerFields = {
  PROVIDERS: fields.list
    .default(['gcp'])
    .refine((names) => names.every(isProvider), `may only name ${Object.keys(CONSTRUCTORS).join(', ')}`),
  COMPUTE_ENDPOINT: fields.url.optional(),
} satisfies z.ZodRawShape;

/** Of names that were validated. Opens nothing yet: a provider makes its clients at its first call. */
export const buildProviders = (names: readonly string[], options: ProviderOptions): Providers =>
  Object.fromEntries(
    [...new Set(names)].filter(isProvider).map((name) => [name, CONSTRUCTORS[name](options)]),
  );
