/** Which providers there are, for the configuration of everyone who talks to them; nothing of theirs is loaded here. */

import type { z } from 'zod';

import { fields } from '#shared/app/config.ts';

export const PROVIDERS = ['gcp', 'kubernetes'] as const;
export type Configured = (typeof PROVIDERS)[number];

export const isProvider = (name: string): name is Configured => PROVIDERS.some((known) => known === name);

/** Keys of everyone who talks to providers. */
export const providerFields = {
  PROVIDERS: fields.list
    .default(['gcp'])
    .refine((names) => names.every(isProvider), `may only name ${PROVIDERS.join(', ')}`),
  COMPUTE_ENDPOINT: fields.url.optional(),
} satisfies z.ZodRawShape;
