/** Environment of discovery; every key that it reads stands here. */

import { z } from 'zod';

import { fields } from '#shared/app/config.ts';

export const configSchema = z
  .object({
    GOOGLE_CLOUD_PROJECT: fields.text,
    INSTALLATION_ID: fields.installationId,
    PROXY_NAMESPACES: fields.namespaces,
    FIRESTORE_DATABASE: fields.text.default('(default)'),
    CREDENTIALS_DATABASE: fields.text.default('credentials'),
    PROXY_CHANGES_TOPIC: fields.text.default('proxy-changes'),
    PROXY_PROBES_TOPIC: fields.text.default('proxy-probes'),
    LEASE_TTL_MIN_SECONDS: fields.seconds(1, 86_400).default(10),
    LEASE_TTL_MAX_SECONDS: fields.seconds(1, 604_800).default(86_400),
    LEASE_TTL_DEFAULT_SECONDS: fields.seconds(1, 604_800).default(300),
  })
  .refine(
    (config) =>
      config.LEASE_TTL_MIN_SECONDS <= config.LEASE_TTL_DEFAULT_SECONDS &&
      config.LEASE_TTL_DEFAULT_SECONDS <= config.LEASE_TTL_MAX_SECONDS,
    {
      path: ['LEASE_TTL_DEFAULT_SECONDS'],
      message: 'must lie between LEASE_TTL_MIN_SECONDS and LEASE_TTL_MAX_SECONDS',
    },
  );

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
  ttl: {
    minSeconds: config.LEASE_TTL_MIN_SECONDS,
    maxSeconds: config.LEASE_TTL_MAX_SECONDS,
    defaultSeconds: config.LEASE_TTL_DEFAULT_SECONDS,
  },
});

export type Settings = ReturnType<typeof settingsOf>;
