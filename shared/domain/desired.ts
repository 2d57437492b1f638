/** What the owner of a Proxy asks for, with every default filled in, and which part of it is worth a new machine. */

import type { EndpointScheme } from './endpoint.ts';
import type { MachineSpec } from './machine.ts';
import type { HealthCheck, ProviderName } from './proxy.ts';

export type UpdateStrategy = 'RollingUpdate' | 'Recreate';

/** The machine that is asked for, without name and Secrets. */
export interface MachineTemplate {
  readonly port: number;
  readonly revision: string;
  readonly gcp?: NonNullable<MachineSpec['gcp']>;
  readonly kubernetes?: NonNullable<MachineSpec['kubernetes']>;
}

export interface Desired {
  readonly provider: ProviderName;
  readonly labels: Readonly<Record<string, string>>;
  readonly maxLeases: number;
  readonly cordoned: boolean;
  readonly drainTimeoutSeconds: number;
  readonly healthCheck: HealthCheck;
  readonly strategy: UpdateStrategy;
  /** Where the machine may be, in order of preference; a Pod only in its Proxy's namespace. Empty for External. */
  readonly zones: readonly string[];
  /** True where targets must see the machine's own address. */
  readonly ownExit: boolean;
  /** Managed providers only. */
  readonly machine?: MachineTemplate;
  /** External only. */
  readonly endpoint?: { readonly host: string; readonly port: number; readonly scheme: EndpointScheme };
}

/**
 * Values that a field has when nobody asked for anything. They are left out of the text below: a field that a later
 * schema adds with such a value changes no hash, and so replaces no machine.
 */
const QUIET = {
  revision: '',
  gcp: { subnetwork: 'default', externalIP: 'Ephemeral', provisioningModel: 'Standard' },
} as const;

const isPlain = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** JSON with sorted keys, without absent values and without those that equal `quiet`. */
const canonical = (value: unknown, quiet?: unknown): string => {
  if (Array.isArray(value)) return `[${value.map((item) => canonical(item)).join(',')}]`;
  if (!isPlain(value)) return JSON.stringify(value) ?? 'null';
  const quietFields = isPlain(quiet) ? quiet : {};
  const fields = Object.keys(value)
    .filter((key) => value[key] !== undefined && value[key] !== quietFields[key])
    .toSorted()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key], quietFields[key])}`);
  return `{${fields.join(',')}}`;
};

/**
 * The text whose digest names a machine: everything that is worth a replacement, Secrets as digests. Zones, labels,
 * bounds and health checks are not in it.
 */
export const replaceWorthy = (
  machine: MachineTemplate,
  inputs: { readonly userDataDigest?: string; readonly credentialsDigest?: string },
): string => canonical({ ...machine, ...inputs }, QUIET);
