/** From a machine's specification to the body of its create call. */

import type { protos } from '@google-cloud/compute';

import { SystemError } from '#shared/app/errors.ts';
import type { MachineSpec } from '#shared/domain/machine.ts';
import { MACHINE_LABELS } from '#shared/domain/names.ts';

type InstanceBody = protos.google.cloud.compute.v1.IInstance;
type GcpSpec = NonNullable<MachineSpec['gcp']>;

export interface InstanceContext {
  readonly projectId: string;
  readonly installation: string;
  readonly zone: string;
}

/** Limits of Compute Engine's metadata, in bytes of UTF-8. */
const MAX_METADATA_VALUE = 256 * 1024;
const MAX_METADATA_TOTAL = 512 * 1024;

const bytes = (text: string): number => new TextEncoder().encode(text).byteLength;

/** `europe-west1` for `europe-west1-b`. */
export const regionOf = (zone: string): string => zone.slice(0, zone.lastIndexOf('-'));

const metadataOf = (spec: MachineSpec): Record<string, string> => ({
  'block-project-ssh-keys': 'true',
  'proxy-port': String(spec.port),
  ...(spec.userData === undefined ? {} : { 'user-data': spec.userData }),
  ...(spec.credentials
    ? { 'proxy-username': spec.credentials.username, 'proxy-password': spec.credentials.password }
    : {}),
});

/** Throws `InvalidSpec` for metadata that the provider would refuse; values are not repeated, they may be secret. */
const checkMetadata = (metadata: Readonly<Record<string, string>>): void => {
  let total = 0;
  for (const [key, value] of Object.entries(metadata)) {
    const size = bytes(value);
    total += size + bytes(key);
    if (size > MAX_METADATA_VALUE) {
      throw new SystemError(
        'InvalidSpec',
        `Metadata ${key} has ${size} bytes; Compute Engine takes at most ${MAX_METADATA_VALUE}.`,
      );
    }
  }
  if (total > MAX_METADATA_TOTAL) {
    throw new SystemError(
      'InvalidSpec',
      `The metadata has ${total} bytes together; Compute Engine takes at most ${MAX_METADATA_TOTAL}.`,
    );
  }
};

/** A plain name stands for a subnetwork of the project, in the zone's region. */
const subnetworkPath = (subnetwork: string, { projectId, zone }: InstanceContext): string =>
  subnetwork.includes('/')
    ? subnetwork
    : `projects/${projectId}/regions/${regionOf(zone)}/subnetworks/${subnetwork}`;

/*
 * A preempted machine stops instead of vanishing: it stays visible with the reason, is told apart from one that a
 * person deleted, and can be started again under the same name.
 */
const schedulingOf = (gcp: GcpSpec): InstanceBody['scheduling'] =>
  gcp.provisioningModel === 'Spot'
    ? {
        provisioningModel: 'SPOT',
        instanceTerminationAction: 'STOP',
        automaticRestart: false,
        onHostMaintenance: 'TERMINATE',
      }
    : { provisioningModel: 'STANDARD' };

/** The labels that say whose a machine is; they are in the create call itself. */
export const labelsOf = (spec: MachineSpec, installation: string): Record<string, string> => ({
  [MACHINE_LABELS.installation]: installation,
  [MACHINE_LABELS.uid]: spec.ref.uid,
  [MACHINE_LABELS.hash]: spec.hash,
});

/** The body of an insert call. Throws `InvalidSpec` when there is nothing for this provider, or too much metadata. */
export const instanceBody = (spec: MachineSpec, context: InstanceContext): InstanceBody => {
  const { gcp } = spec;
  if (!gcp) throw new SystemError('InvalidSpec', 'The Proxy says nothing for the provider gcp.');
  const metadata = metadataOf(spec);
  checkMetadata(metadata);
  const labels = labelsOf(spec, context.installation);
  return {
    name: spec.name,
    description: `Proxy ${spec.ref.namespace}/${spec.ref.name}`,
    machineType: `zones/${context.zone}/machineTypes/${gcp.machineType}`,
    labels,
    disks: [{ boot: true, autoDelete: true, initializeParams: { sourceImage: gcp.image, labels } }],
    networkInterfaces: [
      {
        subnetwork: subnetworkPath(gcp.subnetwork, context),
        ...(gcp.externalIP === 'Ephemeral'
          ? { accessConfigs: [{ name: 'External NAT', type: 'ONE_TO_ONE_NAT' }] }
          : {}),
      },
    ],
    metadata: { items: Object.entries(metadata).map(([key, value]) => ({ key, value })) },
    tags: { items: [`${context.installation}-proxy`] },
    // No identity: whoever gets through the proxy to the metadata server finds no token there.
    serviceAccounts: [],
    shieldedInstanceConfig: {
      enableSecureBoot: true,
      enableVtpm: true,
      enableIntegrityMonitoring: true,
    },
    scheduling: schedulingOf(gcp) ?? null,
  };
};
