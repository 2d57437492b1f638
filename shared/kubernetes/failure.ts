/** What the API server's refusals mean to a caller. */

import { z } from 'zod';

import { SystemError, type ErrorCode } from '#shared/app/errors.ts';

/** A whole reply, whatever its status. */
export interface ApiReply {
  readonly status: number;
  readonly text: string;
}

/** metav1.Status, as far as a decision rests on it. */
const status = z.object({
  kind: z.literal('Status'),
  reason: z.string().default(''),
  message: z.string().default(''),
  details: z.object({ name: z.string().default('') }).default({ name: '' }),
});
type Status = z.output<typeof status>;

const CODES: Readonly<Record<number, ErrorCode>> = {
  400: 'InvalidSpec',
  401: 'Unauthorised',
  403: 'Unauthorised',
  404: 'NotFound',
  409: 'Conflict',
  413: 'InvalidSpec',
  422: 'InvalidSpec',
};

/** JSON or undefined; a proxy in between may answer with anything. */
export const jsonOf = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

const statusOf = (text: string): Status | undefined => status.safeParse(jsonOf(text)).data;

/**
 * True only when the API server says that this very object does not exist. A missing API, a wrong path or a gateway's own
 * 404 say nothing about the object.
 */
export const saysAbsent = (reply: ApiReply, name: string): boolean => {
  if (reply.status !== 404) return false;
  const body = statusOf(reply.text);
  return body?.reason === 'NotFound' && body.details.name === name;
};

/** The error of a reply outside 2xx. `name` is the object that was asked for. */
export const errorOfReply = (what: string, reply: ApiReply, name = ''): SystemError => {
  const body = statusOf(reply.text);
  const known = CODES[reply.status] ?? 'Transient';
  const code = known === 'NotFound' && !saysAbsent(reply, name) ? 'Transient' : known;
  return new SystemError(code, `Kubernetes: ${what} was answered ${reply.status}`, {
    provider: {
      code: body?.reason || String(reply.status),
      message: (body?.message ?? reply.text).slice(0, 1024),
    },
  });
};

/** The error of a request that got no reply. Errors of our own, such as missing credentials, keep their code. */
export const errorOfTransport = (what: string, cause: unknown): SystemError =>
  cause instanceof SystemError
    ? cause
    : new SystemError('Transient', `Kubernetes: ${what} got no answer`, { cause });
