/** Environment of health; every key that it reads stands here. */

import { z } from 'zod';

import { fields } from '#shared/app/config.ts';
import { MAX_SHARDS } from '#shared/domain/shard.ts';

import { parseTarget, type Target } from './probe/target.ts';

const environment = z.object({
  GOOGLE_CLOUD_PROJECT: fields.text,
  INSTALLATION_ID: fields.installationId,
  FIRESTORE_DATABASE: fields.text.default('(default)'),
  CREDENTIALS_DATABASE: fields.text.default('credentials'),
  PROXY_CHANGES_TOPIC: fields.text.default('proxy-changes'),
  /** The echo function: what every proxy is probed with. */
  PROBE_TARGET_URL: z.string().transform((url, context) => {
    const target = parseTarget(url, 'echo');
    if (target) return target;
    context.addIssue({ code: 'custom', message: 'must be an http or https URL' });
    return z.NEVER;
  }),
  /** Given where the echo answers only callers with an ID token that is made out to this audience. */
  PROBE_TARGET_AUDIENCE: fields.text.optional(),
  /** A page that stands in for the echo where that refuses; https, so that no proxy can answer in its name. */
  PROBE_SECOND_TARGET_URL: z
    .string()
    .transform((url, context) => {
      const target = parseTarget(url, 'page');
      if (target?.secure) return target;
      context.addIssue({ code: 'custom', message: 'must be an https URL' });
      return z.NEVER;
    })
    .optional(),
  /** How many probes of endpoints that answered last time may be in flight at once. */
  PROBES_AT_ONCE: fields.count(1, 1000).default(64),
  /** How many parts the fleet is judged in; each has its own claim and its own document. */
  SHARDS: fields.count(1, MAX_SHARDS).default(1),
  /** A PEM file with authorities that are trusted besides the usual ones. */
  PROBE_CA_FILE: fields.text.optional(),
});

/** A token that travels in the clear is anybody's. */
export const configSchema = environment.refine(
  ({ PROBE_TARGET_URL: target, PROBE_TARGET_AUDIENCE: audience }) => audience === undefined || target.secure,
  { path: ['PROBE_TARGET_AUDIENCE'], message: 'needs an https URL as PROBE_TARGET_URL' },
);

export type Config = z.output<typeof configSchema>;

const echoOf = ({ PROBE_TARGET_URL: echo, PROBE_TARGET_AUDIENCE: audience }: Config): Target =>
  audience === undefined ? echo : { ...echo, audience };

/** The settings that the handler takes. */
export const settingsOf = (config: Config) => ({
  installation: config.INSTALLATION_ID,
  targets: [echoOf(config), config.PROBE_SECOND_TARGET_URL].filter((target) => target !== undefined),
  shards: config.SHARDS,
  probesAtOnce: config.PROBES_AT_ONCE,
});
