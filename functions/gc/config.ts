/** Environment of gc; every key that it reads stands here. */

import { z } from 'zod';

import { fields } from '#shared/app/config.ts';
import { providerFields } from '#shared/providers/configuration.ts';

import type { Limits } from './observation.ts';

export const configSchema = z.object({
  GOOGLE_CLOUD_PROJECT: fields.text,
  INSTALLATION_ID: fields.installationId,
  PROXY_NAMESPACES: fields.namespaces,
  FIRESTORE_DATABASE: fields.text.default('(default)'),
  PROXY_CHANGES_TOPIC: fields.text.default('proxy-changes'),
  PROXY_PROBES_TOPIC: fields.text.default('proxy-probes'),
  /** A file (outside GKE), or the URL of the cluster's DNS endpoint: one of the two. */
  KUBECONFIG: fields.text.optional(),
  CLUSTER_ENDPOINT: fields.url.optional(),
  ...providerFields,
  GC_MIN_AGE_SECONDS: fields.seconds(0, 86_400).default(600),
  GC_SIGHTING_GAP_SECONDS: fields.seconds(0, 86_400).default(120),
  GC_MAX_DELETIONS: fields.count(1, 1000).default(10),
});

export type Config = z.output<typeof configSchema>;

/** Publishing this many takes a few seconds; what is left over is found again in the next minute. */
const MAX_NUDGES = 5000;
const TOMBSTONE_AGE_MS = 60 * 60 * 1000;

export const limitsOf = (config: Config): Limits => ({
  minAgeMs: config.GC_MIN_AGE_SECONDS * 1000,
  sightingGapMs: config.GC_SIGHTING_GAP_SECONDS * 1000,
  maxDeletions: config.GC_MAX_DELETIONS,
  maxNudges: MAX_NUDGES,
  tombstoneAgeMs: TOMBSTONE_AGE_MS,
});

/** The settings that the application takes. */
export const settingsOf = (config: Config) => ({
  projectId: config.GOOGLE_CLOUD_PROJECT,
  databaseId: config.FIRESTORE_DATABASE,
  installation: config.INSTALLATION_ID,
  namespaces: config.PROXY_NAMESPACES,
  changesTopic: config.PROXY_CHANGES_TOPIC,
  probesTopic: config.PROXY_PROBES_TOPIC,
  ...(config.COMPUTE_ENDPOINT === undefined ? {} : { endpoint: config.COMPUTE_ENDPOINT }),
  limits: limitsOf(config),
});

export type Settings = ReturnType<typeof settingsOf>;
