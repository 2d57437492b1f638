/** Specifications of machines for tests. */

import { randomUUID } from 'node:crypto';

import type { MachineSpec } from '#shared/domain/machine.ts';
import { machineName } from '#shared/domain/names.ts';

export const GCP_SPEC = {
  machineType: 'e2-micro',
  image: 'projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64',
  subnetwork: 'default',
  externalIP: 'Ephemeral',
  provisioningModel: 'Standard',
} as const;

/** A machine of a Proxy of its own; `changes` replace whole fields. */
export const machineSpec = (installation: string, changes: Partial<MachineSpec> = {}): MachineSpec => {
  const ref = changes.ref ?? { namespace: 'crawlers', name: 'retail-1', uid: randomUUID() };
  const hash = changes.hash ?? '0123456789abcdef';
  return {
    ref,
    hash,
    name: machineName(installation, ref.uid, hash, 1),
    port: 3128,
    gcp: GCP_SPEC,
    ...changes,
  };
};
