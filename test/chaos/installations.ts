/** Installations on one stack: a project, a cluster and a cloud that they share, and clocks that differ. */

import { join } from 'node:path';

import { namespaceOf, startWorlds, type World } from '#test/e2e/world.ts';
import { openLink } from '#test/services/link.ts';
import type { InstallationOptions } from '#test/stack/installation.ts';
import type { Services } from '#test/stack/services.ts';
import { DEPLOYABLES, type Deployable } from '#test/tools/build.ts';

import { callerOf, type LedgerLimits } from './ledger.ts';
import { seeded } from './random.ts';

/** One name is the beginning of the other, and both have Proxies of the same names. */
export const TWO = ['prod', 'prod2'] as const;

const SKEWED_CLOCK = join(import.meta.dirname, '../stack/skewed-clock.ts');

export interface SharedOptions {
  readonly ids: readonly string[];
  readonly seed: number;
  readonly limits: LedgerLimits;
  /** Loopback ranges for machines. */
  readonly ranges: number;
}

const optionsFor = async (
  id: string,
  { controlPlane, cloud }: Services,
  owner: AsyncDisposableStack,
  { seed, limits: { minAgeMs, skewMs } }: SharedOptions,
): Promise<InstallationOptions> => {
  const random = seeded(seed + id.length);
  const link = await openLink(new URL(controlPlane.server).host);
  owner.defer(() => link.close());
  const own = new Map<Deployable, Readonly<Record<string, string>>>();
  for (const name of DEPLOYABLES) {
    own.set(name, {
      COMPUTE_ENDPOINT: await cloud.compute.openFor(callerOf(id, name)),
      NODE_OPTIONS: `--import=${SKEWED_CLOCK}`,
      CLOCK_SKEW_MS: String(Math.round((random.next() * 2 - 1) * skewMs)),
    });
  }
  return {
    id,
    namespaces: namespaceOf(id),
    prefix: `${id}-`,
    scheduled: false,
    link,
    settings: {
      GC_MIN_AGE_SECONDS: String(minAgeMs / 1000),
      GC_SIGHTING_GAP_SECONDS: String(Math.round(minAgeMs / 4000)),
    },
    settingsOf: (name) => own.get(name) ?? {},
  };
};

/** Each has a namespace of its own. */
export const startShared = (options: SharedOptions): Promise<readonly World[]> =>
  startWorlds({
    ranges: options.ranges,
    installations: (services, owner) =>
      Promise.all(options.ids.map((id) => optionsFor(id, services, owner, options))),
  });
