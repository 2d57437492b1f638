/** Kubernetes Engine: clusters, which others make and an installation only finds. */

import { notFound } from './errors.ts';
import { route, type Route } from './routes.ts';
import type { Resource } from './world.ts';

/** A cluster as it is found. The provider fails without the empty parts. */
export const clusterResource = (name: string, location: string): Resource => ({
  name,
  location,
  status: 'RUNNING',
  network: 'default',
  subnetwork: 'default',
  networkConfig: { network: 'default', subnetwork: 'default' },
  addonsConfig: {},
  autopilot: { enabled: true },
  autoscaling: {},
  databaseEncryption: {},
  defaultMaxPodsConstraint: {},
  ipAllocationPolicy: {},
  legacyAbac: {},
  maintenancePolicy: { window: {} },
  masterAuth: {},
  masterAuthorizedNetworksConfig: {},
  networkPolicy: {},
  nodeConfig: {},
  nodePoolDefaults: { nodeConfigDefaults: {} },
  privateClusterConfig: {},
  releaseChannel: {},
  shieldedNodes: {},
  workloadIdentityConfig: {},
  controlPlaneEndpointsConfig: {
    dnsEndpointConfig: { endpoint: `gke-${name}.${location}.gke.goog`, allowExternalTraffic: false },
    ipEndpointsConfig: { enabled: true },
  },
});

export const containerRoutes: readonly Route[] = [
  route('GET container/v1/projects/{project}/locations/{location}/clusters/{cluster}', (world, { path }) => {
    const cluster = world.resources.get(path.replace('/v1', ''));
    if (!cluster) throw notFound(path);
    return cluster;
  }),
];
