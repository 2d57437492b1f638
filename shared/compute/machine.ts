/** From an instance as the API shows it to a machine as the domain knows it. */

import { z } from 'zod';

import { SystemError } from '#shared/app/errors.ts';
import type { Machine, MachineState } from '#shared/domain/machine.ts';
import { MACHINE_LABELS } from '#shared/domain/names.ts';

/** The part of an instance that is read; what the client leaves out it gives as null or an empty string. */
export const instanceSchema = z.object({
  id: z.coerce.string(),
  name: z.string().min(1),
  zone: z.string(),
  status: z.string().nullish(),
  statusMessage: z.string().nullish(),
  creationTimestamp: z.string().nullish(),
  labels: z.record(z.string(), z.string()).nullish(),
  networkInterfaces: z
    .array(
      z.object({
        networkIP: z.string().nullish(),
        accessConfigs: z.array(z.object({ natIP: z.string().nullish() })).nullish(),
      }),
    )
    .nullish(),
});
export type Instance = z.infer<typeof instanceSchema>;

/** Checks a reply. Throws `Transient` for what is no instance: nothing is concluded from it. */
export const readInstance = (reply: unknown): Instance => {
  const instance = instanceSchema.safeParse(reply);
  if (instance.success) return instance.data;
  throw new SystemError('Transient', 'Compute Engine gave an instance that cannot be read.', {
    cause: instance.error,
  });
};

const STATES: Readonly<Record<string, MachineState>> = {
  PENDING: 'creating',
  PROVISIONING: 'creating',
  STAGING: 'creating',
  RUNNING: 'running',
  PENDING_STOP: 'stopping',
  STOPPING: 'stopping',
  DEPROVISIONING: 'stopping',
  STOPPED: 'stopped',
  TERMINATED: 'stopped',
  SUSPENDING: 'suspended',
  SUSPENDED: 'suspended',
  REPAIRING: 'repairing',
};

/** States in which an address of the provider's is, or will be, the machine's own. */
const ADDRESSABLE: ReadonlySet<MachineState> = new Set(['creating', 'running', 'repairing']);

/** The last part of a resource's URL. */
export const lastSegment = (link: string): string => link.slice(link.lastIndexOf('/') + 1);

const stateOf = (instance: Instance): MachineState => STATES[instance.status ?? ''] ?? 'unknown';

/** One with an external address that it has not got yet has none: its internal one reaches nobody outside. */
const addressOf = (instance: Instance): string | undefined => {
  const [first] = instance.networkInterfaces ?? [];
  const [external] = first?.accessConfigs ?? [];
  const address = external ? external.natIP : first?.networkIP;
  return address ? address : undefined;
};

/** Milliseconds of a time with its offset, as the API writes it; undefined for what is none. */
export const createdAtOf = (resource: Pick<Instance, 'creationTimestamp'>): number | undefined => {
  const milliseconds = Date.parse(resource.creationTimestamp ?? '');
  return Number.isNaN(milliseconds) ? undefined : milliseconds;
};

const detailOf = (instance: Instance, state: MachineState): string | undefined => {
  if (instance.statusMessage) return instance.statusMessage;
  return state === 'running' || !instance.status ? undefined : instance.status;
};

/** An entry, or none where there is no value. */
export const present = <K extends string, V>(key: K, value: V | undefined): Partial<Record<K, V>> => {
  const entry: Partial<Record<K, V>> = {};
  if (value !== undefined) entry[key] = value;
  return entry;
};

/** The machine behind an instance of this project. */
export const toMachine = (instance: Instance, projectId: string): Machine => {
  const state = stateOf(instance);
  const zone = lastSegment(instance.zone);
  const labels = instance.labels ?? {};
  return {
    name: instance.name,
    zone,
    instanceId: instance.id,
    providerID: `gce://${projectId}/${zone}/${instance.name}`,
    state,
    ...present('address', ADDRESSABLE.has(state) ? addressOf(instance) : undefined),
    ...present('installation', labels[MACHINE_LABELS.installation]),
    ...present('uid', labels[MACHINE_LABELS.uid]),
    ...present('hash', labels[MACHINE_LABELS.hash]),
    ...present('createdAt', createdAtOf(instance)),
    ...present('detail', detailOf(instance, state)),
  };
};
