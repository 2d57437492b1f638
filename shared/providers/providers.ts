/** The one place where providers are built. */

import type { Clock } from '#shared/app/clock.ts';
import type { Ids } from '#shared/app/ids.ts';
import type { Log } from '#shared/app/log.ts';
import { openComputeProvider } from '#shared/compute/provider.ts';
import type { MachineProvider } from '#shared/domain/machine.ts';
import type { ClusterOptions } from '#shared/kubernetes/options.ts';
import { lazyConnection } from '#shared/kubernetes/lazy-connection.ts';
import { openPodProvider } from '#shared/kubernetes/pods/provider.ts';

import { isProvider, type Configured } from './configuration.ts';

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
  openPodProvider(options, lazyConnection(clusterOptions, 'egress-proxies-pods'));

const CONSTRUCTORS: Readonly<Record<Configured, (options: ProviderOptions) => MachineProvider>> = {
  gcp: openComputeProvider,
  kubernetes: openPods,
};

export type Providers = Readonly<Partial<Record<Configured, MachineProvider>>>;

/** Of names that were validated. Opens nothing yet: a provider makes its clients at its first call. */
export const buildProviders = (names: readonly string[], options: ProviderOptions): Providers =>
  Object.fromEntries(
    [...new Set(names)].filter(isProvider).map((name) => [name, CONSTRUCTORS[name](options)]),
  );
