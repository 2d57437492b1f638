/** Builds the configured providers. Throws `NotConfigured` for a name that has no constructor. */

import { SystemError } from '#shared/app/errors.ts';
import type { MachineProvider } from '#shared/domain/machine.ts';

export type Constructors = Readonly<Record<string, () => MachineProvider>>;

export const buildProviders = (
  names: readonly string[],
  constructors: Constructors,
): readonly MachineProvider[] =>
  [...new Set(names)].map((name) => {
    const build = Object.hasOwn(constructors, name) ? constructors[name] : undefined;
    if (build) return build();
    const known = Object.keys(constructors).join(', ');
    throw new SystemError(
      'NotConfigured',
      `Configuration is not usable:\n  PROVIDERS: ${JSON.stringify(name)} is not one of ${known}`,
    );
  });
