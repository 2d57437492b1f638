/** The one place where providers are built: what stands in this map can be configured, and nothing else. */

import { openComputeProvider, type ComputeProviderOptions } from '#shared/compute/provider.ts';
import type { MachineProvider } from '#shared/domain/machine.ts';

const CONSTRUCTORS = {
  gcp: openComputeProvider,
} as const satisfies Readonly<Record<string, (options: ComputeProviderOptions) => MachineProvider>>;

export type Configured = keyof typeof CONSTRUCTORS;

export const isProvider = (name: string): name is Configured => Object.hasOwn(CONSTRUCTORS, name);

export const PROVIDER_NAMES: readonly string[] = Object.keys(CONSTRUCTORS);

/** Of names that were validated. Opens nothing yet: a provider makes its clients at its first call. */
export const buildProviders = (
  names: readonly string[],
  options: ComputeProviderOptions,
): readonly MachineProvider[] =>
  [...new Set(names)].filter(isProvider).map((name) => CONSTRUCTORS[name](options));
