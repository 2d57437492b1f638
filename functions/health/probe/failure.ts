/** Why a probe failed, in the words of the closed list. */

import type { ProbeOutcome } from '#shared/domain/verdict.ts';

/** `message` is for logs: our own words and numbers, never what a peer sent and never a credential. */
export class ProbeFailure extends Error {
  override readonly name = 'ProbeFailure';
  readonly outcome: Exclude<ProbeOutcome, 'Ok'>;

  constructor(outcome: Exclude<ProbeOutcome, 'Ok'>, message: string) {
    super(message);
    this.outcome = outcome;
  }
}

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unknown';

/** Shortages of this process or machine: they say nothing about a proxy. */
const OURS = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'ENOBUFS', 'EADDRNOTAVAIL']);

const LOST = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH']);

/** What an error means that came before the connection stood. */
export const connectFailure = (error: unknown): ProbeFailure => {
  const code = codeOf(error);
  if (OURS.has(code)) return new ProbeFailure('NotProbed', `connect: ${code}`);
  if (code === 'ECONNREFUSED') return new ProbeFailure('ConnectRefused', code);
  if (code === 'ETIMEDOUT') return new ProbeFailure('ConnectTimeout', code);
  return new ProbeFailure('ConnectFailed', `connect: ${code}`);
};

/** What an error means during a TLS handshake: a lost connection is not a bad certificate. */
export const handshakeFailure = (error: unknown): ProbeFailure => {
  const code = codeOf(error);
  return LOST.has(code) ? lostFailure(error) : new ProbeFailure('TlsInvalid', `handshake: ${code}`);
};

/** What an error means on a connection that stood. */
export const lostFailure = (error: unknown): ProbeFailure =>
  new ProbeFailure('ConnectionLost', `connection: ${codeOf(error)}`);
