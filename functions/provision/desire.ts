/** From a Proxy object to what is desired: every default filled in. */

import type { Desired, MachineTemplate } from '#shared/domain/desired.ts';
import { DEFAULT_HEALTH_CHECK, DEFAULT_PROXY_PORT } from '#shared/domain/proxy.ts';
import type { ProxyObject } from '#shared/kubernetes/cluster.ts';

type Spec = ProxyObject['spec'];

const templateOf = (spec: Spec): Pick<Desired, 'machine'> => {
  if (spec.provider === undefined) return {};
  const { gcp, kubernetes } = spec;
  const machine: MachineTemplate = {
    port: spec.port ?? DEFAULT_PROXY_PORT,
    revision: spec.revision ?? '',
    ...(gcp
      ? {
          gcp: {
            machineType: gcp.machineType,
            image: gcp.image,
            subnetwork: gcp.subnetwork ?? 'default',
            externalIP: gcp.externalIP ?? 'Ephemeral',
            provisioningModel: gcp.provisioningModel ?? 'Standard',
          },
        }
      : {}),
    ...(kubernetes ? { kubernetes } : {}),
  };
  return { machine };
};

const zonesOf = ({ spec, metadata }: Pick<ProxyObject, 'spec' | 'metadata'>): readonly string[] => {
  if (spec.gcp) return spec.gcp.zones;
  return spec.provider === undefined ? [] : [metadata.namespace];
};

export const desiredOf = ({ spec, metadata }: ProxyObject): Desired => ({
  provider: spec.provider ?? 'External',
  labels: metadata.labels ?? {},
  maxLeases: spec.maxLeases ?? 1,
  cordoned: spec.cordoned ?? false,
  drainTimeoutSeconds: spec.drainTimeoutSeconds ?? 300,
  healthCheck: { ...DEFAULT_HEALTH_CHECK, ...spec.healthCheck },
  strategy: spec.updateStrategy?.type ?? 'RollingUpdate',
  zones: zonesOf({ spec, metadata }),
  ownExit: spec.gcp !== undefined && (spec.gcp.externalIP ?? 'Ephemeral') === 'Ephemeral',
  ...templateOf(spec),
  ...(spec.endpoint
    ? {
        endpoint: {
          host: spec.endpoint.host,
          port: spec.endpoint.port,
          scheme: spec.endpoint.scheme ?? 'http',
        },
      }
    : {}),
});
