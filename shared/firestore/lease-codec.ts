/**
 * What a commit always rewrites of a lease document, as one JSON text: it costs the database and its client far less than a
 * map of a dozen fields per lease, and less than several fields.
 */

import { z } from 'zod';

import { END_REASONS, REPORT_OUTCOMES, type Lease, type LeaseDocument } from '#shared/domain/lease.ts';

const leaseSchema: z.ZodType<Lease> = z.object({
  id: z.string(),
  endpoint: z.object({
    id: z.string(),
    host: z.string(),
    port: z.number(),
    scheme: z.enum(['http', 'https']),
  }),
  holder: z.string(),
  caller: z.string(),
  fence: z.number(),
  grantedAt: z.number(),
  expiresAt: z.number(),
  ttlSeconds: z.number(),
  report: z
    .object({ outcome: z.enum(REPORT_OUTCOMES), at: z.number(), target: z.string().exactOptional() })
    .exactOptional(),
});

/** Text to what it says; anything but JSON is an issue. */
export const jsonText = z.string().transform((text, context): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    context.addIssue({ code: 'custom', message: 'is no JSON text' });
    return z.NEVER;
  }
});

/** Field `leases`: what only lease operations change. */
export type LeaseContent = Pick<LeaseDocument, 'leases' | 'ended' | 'fence'>;

export const NO_LEASES: LeaseContent = { leases: {}, ended: [], fence: 0 };

export const leasesText = jsonText.pipe(
  z.object({
    leases: z.record(z.string(), leaseSchema),
    ended: z.array(z.object({ id: z.string(), reason: z.enum(END_REASONS), at: z.number() })),
    fence: z.number(),
  }),
);

export const toText = ({ leases, ended, fence }: LeaseContent): string =>
  JSON.stringify({ leases, ended, fence });
