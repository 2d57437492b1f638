/** Environment of provision; every key that it reads stands here. */

import { z } from 'zod';

import { fields } from '#shared/app/config.ts';
import { providerFields } from '#shared/providers/configuration.ts';

export const configSchema = z.object({
  GOOGLE_CLOUD_PROJECT: fields.text,
  INSTALLATION_ID: fields.installationId,
  PROXY_NAMESPACES: fields.namespaces,
  FIRESTORE_DATABASE: fields.text.default('(default)'),
  CREDENTIALS_DATABASE: fields.text.default('credentials'),
  PROXY_CHANGES_TOPIC: fields.text.default('proxy-changes'),
  PROXY_PROBES_TOPIC: fields.text.default('proxy-probes'),
  /** A file (outside GKE), or the URL of the cluster's DNS endpoint: one of the two. */
  KUBECONFIG: fields.text.optional(),
  CLUSTER_ENDPOINT: fields.url.optional(),
  ...providerFields,
  ALLOW_PRIVATE_ENDPOINTS: fields.flag.default(false),
  /** How much of the fleet may be replaced at once; one Proxy at the least. */
  MAX_REPLACING_PERCENT: fields.count(1, 100).default(25),
});

export type Config = z.output<typeof configSchema>;

/** The settings that the application takes. */
export const settingsOf = (config: Config) => ({
  projectId: config.GOOGLE_CLOUD_PROJECT,
  databaseId: config.FIRESTORE_DATABASE,
  credentialsDatabaseId: config.CREDENTIALS_DATABASE,
  installation: config.INSTALLATION_ID,
  namespaces: config.PROXY_NAMESPACES,
  changesTopic: config.PROXY_CHANGES_TOPIC,
  probesTopic: config.PROXY_PROBES_TOPIC,
  allowPrivateEndpoints: config.ALLOW_PRIVATE_ENDPOINTS,
  maxReplacingPercent: config.MAX_REPLACING_PERCENT,
  ...(config.COMPUTE_ENDPOINT === undefined ? {} : { endpoint: config.COMPUTE_ENDPOINT }),
});

export type Settings = ReturnType<typeof settingsOf>;
