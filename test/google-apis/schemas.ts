/** What the APIs take, as far as an installation uses it. A field that is not here is refused, as Google refuses unknown ones. */

import { z } from 'zod';

const labels = z.record(z.string(), z.string()).optional();
const some = z.record(z.string(), z.unknown()).nullish();
const text = z.string().optional();

export const databaseSchema = z.strictObject({
  name: text,
  locationId: text,
  type: z.enum(['FIRESTORE_NATIVE', 'DATASTORE_MODE']).optional(),
  appEngineIntegrationMode: text,
  concurrencyMode: text,
  databaseEdition: text,
  deleteProtectionState: text,
  pointInTimeRecoveryEnablement: text,
  etag: text,
});

export const indexSchema = z.strictObject({
  apiScope: text,
  queryScope: text,
  fields: z.array(
    z.strictObject({ fieldPath: z.string(), order: z.enum(['ASCENDING', 'DESCENDING']).optional() }),
  ),
});

export const fieldSchema = z.strictObject({
  name: text,
  ttlConfig: z.strictObject({ expirationOffset: text }).nullish(),
  indexConfig: z
    .strictObject({
      indexes: z
        .array(
          z.strictObject({
            queryScope: text,
            order: text,
            arrayConfig: text,
            fields: z.array(z.strictObject({ fieldPath: text, order: text, arrayConfig: text })).optional(),
          }),
        )
        .optional(),
    })
    .nullish(),
});

export const functionSchema = z.strictObject({
  name: text,
  labels,
  buildConfig: z.strictObject({
    runtime: z.enum(['nodejs22', 'nodejs24']),
    entryPoint: z.string(),
    serviceAccount: z.string(),
    dockerRepository: z.string(),
    onDeployUpdatePolicy: some,
    build: text,
    source: z.strictObject({ storageSource: z.strictObject({ bucket: z.string(), object: z.string() }) }),
  }),
  serviceConfig: z.strictObject({
    allTrafficOnLatestRevision: z.boolean().optional(),
    availableCpu: text,
    availableMemory: z
      .string()
      .regex(/^\d+(?:Mi|Gi|M|G)$/)
      .optional(),
    directVpcEgress: z.enum(['VPC_EGRESS_ALL_TRAFFIC', 'VPC_EGRESS_PRIVATE_RANGES_ONLY']).optional(),
    directVpcNetworkInterface: z
      .array(z.strictObject({ network: text, subnetwork: text, tags: z.array(z.string()).optional() }))
      .optional(),
    environmentVariables: z.record(z.string(), z.string()).optional(),
    ingressSettings: z.enum(['ALLOW_ALL', 'ALLOW_INTERNAL_ONLY', 'ALLOW_INTERNAL_AND_GCLB']).optional(),
    minInstanceCount: z.number().optional(),
    maxInstanceCount: z.number().optional(),
    maxInstanceRequestConcurrency: z.number().max(1000).optional(),
    serviceAccountEmail: z.string(),
    timeoutSeconds: z.number().max(3600).optional(),
    uri: text,
    service: text,
    revision: text,
  }),
});

const oidcToken = z.strictObject({ audience: z.string(), serviceAccountEmail: z.string() });

export const jobSchema = z.strictObject({
  name: z.string(),
  description: text,
  schedule: z.string(),
  timeZone: z.string(),
  attemptDeadline: text,
  retryConfig: some,
  httpTarget: z.strictObject({ httpMethod: z.enum(['POST']), uri: z.url(), oidcToken }),
});

export const bucketSchema = z.strictObject({
  name: z.string().regex(/^[a-z0-9][a-z0-9-_.]{1,61}[a-z0-9]$/),
  location: z.string(),
  storageClass: text,
  labels,
  lifecycle: some,
  iamConfiguration: z.strictObject({
    publicAccessPrevention: z.enum(['enforced', 'inherited']),
    uniformBucketLevelAccess: z.strictObject({ enabled: z.boolean() }),
  }),
});

export const repositorySchema = z.strictObject({
  name: text,
  format: z.enum(['DOCKER']),
  mode: text,
  labels,
  cleanupPolicies: z.record(
    z.string(),
    z.strictObject({
      id: text,
      action: z.enum(['KEEP', 'DELETE']),
      condition: z.strictObject({ olderThan: text, tagState: text }).optional(),
      mostRecentVersions: z.strictObject({ keepCount: z.number() }).optional(),
    }),
  ),
});

const link = z.string().regex(/^(?:https:.*\/)?projects\//);
const computeName = z.string().regex(/^[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?$/);

export const networkSchema = z.strictObject({
  name: computeName,
  autoCreateSubnetworks: z.boolean(),
  routingConfig: some,
  networkFirewallPolicyEnforcementOrder: text,
});

export const subnetworkSchema = z.strictObject({
  name: computeName,
  ipCidrRange: z.string(),
  network: link,
  region: z.string(),
  privateIpGoogleAccess: z.boolean(),
  logConfig: some,
});

export const addressSchema = z.strictObject({
  name: computeName,
  region: z.string(),
  addressType: z.enum(['EXTERNAL', 'INTERNAL']),
  labels,
});

export const routerSchema = z.strictObject({
  name: text,
  network: link.optional(),
  region: text,
  bgp: some,
  nats: z
    .array(
      z.looseObject({
        name: z.string(),
        natIps: z.array(link),
        subnetworks: z.array(z.looseObject({ name: link })),
      }),
    )
    .optional(),
});

const ports = z.array(z.strictObject({ IPProtocol: z.string(), ports: z.array(z.string()).optional() }));

export const firewallSchema = z.strictObject({
  name: computeName,
  network: link,
  description: text,
  direction: z.enum(['INGRESS', 'EGRESS']),
  priority: z.number(),
  sourceRanges: z.array(z.string()).min(1).optional(),
  destinationRanges: z.array(z.string()).min(1).optional(),
  targetTags: z.array(z.string()).min(1),
  allowed: ports.optional(),
  denied: ports.optional(),
  logConfig: z.strictObject({ enable: z.boolean(), metadata: text }).optional(),
});

export const metricSchema = z.strictObject({
  name: z.string(),
  description: text,
  filter: z.string(),
  labelExtractors: z.record(z.string(), z.string()).optional(),
  valueExtractor: text,
  bucketOptions: z
    .strictObject({ exponentialBuckets: some, linearBuckets: some, explicitBuckets: some })
    .partial()
    .optional(),
  metricDescriptor: z.strictObject({
    metricKind: z.enum(['DELTA']),
    valueType: z.enum(['INT64', 'DISTRIBUTION']),
    unit: text,
    labels: z.array(z.strictObject({ key: z.string(), valueType: text, description: text })).optional(),
  }),
});

export const alertSchema = z.strictObject({
  name: text,
  displayName: z.string(),
  combiner: z.enum(['OR', 'AND']),
  severity: z.enum(['CRITICAL', 'ERROR', 'WARNING']).optional(),
  enabled: z.boolean().optional(),
  conditions: z.array(some),
  documentation: some,
  userLabels: labels,
  notificationChannels: z.array(z.string()).optional(),
  alertStrategy: some,
});

export const dashboardSchema = z.strictObject({
  displayName: z.string(),
  labels,
  etag: text,
  mosaicLayout: z.strictObject({ columns: z.number(), tiles: z.array(some) }),
});
