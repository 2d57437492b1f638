/** Who calls: the platform has verified the token and taken its signature away, so its claims are read and not judged. */

import { z } from 'zod';

const claims = z.object({ email: z.string().min(1).max(320) });

const payloadOf = (authorization: string): unknown => {
  const [, payload = ''] = /^Bearer +[^.\s]+\.([^.\s]+)\.[^.\s]*$/i.exec(authorization) ?? [];
  try {
    return JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'));
  } catch {
    return undefined;
  }
};

/**
 * The caller's email, or '' when there is none. Where both headers are present the platform verifies the serverless one
 * only, so that the other one proves nothing.
 */
export const callerOf = (headers: Readonly<Record<string, string | undefined>>): string => {
  const authorization = headers['x-serverless-authorization'] ?? headers['authorization'];
  if (authorization === undefined) return '';
  const parsed = claims.safeParse(payloadOf(authorization));
  return parsed.success ? parsed.data.email : '';
};
