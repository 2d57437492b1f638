/** What a caller is told: its own nonce, and the address that it came from. */

import { isAddress } from '#shared/domain/endpoint.ts';

const NONCE = /^[A-Za-z0-9_-]{1,128}$/;

export const isNonce = (value: string | null): value is string => value !== null && NONCE.test(value);

/** Sockets that serve both families write IPv4 addresses in IPv6. */
const plain = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '');

/**
 * The address of the caller: the last entry of X-Forwarded-For, which the front end appended (a caller can only prepend),
 * else the socket's peer. `undefined` when neither is an address.
 */
export const callerAddress = (
  forwardedFor: string | undefined,
  peer: string | undefined,
): string | undefined =>
  [forwardedFor?.split(',').at(-1), peer]
    .map((candidate) => plain(candidate?.trim() ?? ''))
    .find((candidate) => isAddress(candidate));
