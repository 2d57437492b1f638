/** Environment of health; every key that it reads stands here. */

import { z } from 'zod';

import { fields } from '#shared/app/config.ts';

import { parseTarget } from './probe/target.ts';

export const configSchema = z.object({
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
  /** A PEM file with authorities that are trusted besides the usual ones. */
  PROBE_CA_FILE: fields.text.optional(),
});

export type Config = z.output<typeof configSchema>;
