/** Ports and loopback ranges of our own, exclusive among all processes of this machine that ask here. */

import { createSocket } from 'node:dgram';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { randomInt } from 'node:crypto';

export interface PortRange {
  readonly first: number;
  readonly last: number;
}

export interface Claim {
  release(): Promise<void>;
}

export interface PortClaim extends Claim {
  readonly port: number;
}

export interface LoopbackRange extends Claim {
  /** The first three bytes, such as `127.80.3`. */
  readonly prefix: string;
  /** The address with this last byte, 1 to 253. */
  address(last: number): string;
}

const LOWEST_PORT = 20_000;

/** The ports below those that the kernel gives to outgoing connections, so that none of these can take a free one. */
export const claimablePorts = (ephemeral: string): PortRange => {
  const [low = 32_768, high = 60_999] = (ephemeral.match(/\d+/gu) ?? []).map(Number);
  if (low >= LOWEST_PORT + 1_000) return { first: LOWEST_PORT, last: low - 1 };
  return high <= 64_000 ? { first: high + 1, last: 65_535 } : { first: LOWEST_PORT, last: 65_535 };
};

const kernelRange = (): string => {
  try {
    return readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8');
  } catch {
    return '';
  }
};

const close = (closable: { close(done: () => void): unknown }): Promise<void> =>
  new Promise((resolve) => {
    closable.close(() => resolve());
  });

const listening = (host: string, port: number): Promise<Claim | undefined> =>
  new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', () => resolve(undefined));
    server.listen({ host, port, exclusive: true }, () => {
      server.unref();
      resolve({ release: () => close(server) });
    });
  });

/*
 * The claim is a UDP socket on the port of the same number: the kernel gives it to one process only, takes it back
 * when that process dies, and it is not in the way of the TCP server that the port is for.
 */
const reserved = (port: number): Promise<Claim | undefined> =>
  new Promise((resolve) => {
    const socket = createSocket('udp4');
    socket.once('error', () => {
      socket.close();
      resolve(undefined);
    });
    socket.bind({ address: '127.0.0.1', port, exclusive: true }, () => {
      socket.unref();
      resolve({ release: () => close(socket) });
    });
  });

/** This port, when nobody listens on it and nobody else has claimed it. */
export const tryClaimPort = async (port: number): Promise<PortClaim | undefined> => {
  const claim = await reserved(port);
  const tried = claim && (await listening('0.0.0.0', port));
  await tried?.release();
  if (claim && tried) return { port, release: () => claim.release() };
  await claim?.release();
  return undefined;
};

const ATTEMPTS = 200;

/** A TCP port that is free on every address; the claim holds until it is released or this process ends. */
export const claimPort = async (): Promise<PortClaim> => {
  const { first, last } = claimablePorts(kernelRange());
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const claim = await tryClaimPort(randomInt(first, last + 1));
    if (claim) return claim;
  }
  throw new Error(`no free port between ${first} and ${last} in ${ATTEMPTS} tries`);
};

/** A port of `claimPort`, claimed until this process ends. */
export const freePort = async (): Promise<number> => (await claimPort()).port;

const CLAIM_PORT = 19_999;
const CLAIM_BYTE = 254;

/** The range 127.second.third.0/24, when no process has claimed it. */
export const tryClaimLoopbackRange = async (
  second: number,
  third: number,
): Promise<LoopbackRange | undefined> => {
  const prefix = `127.${second}.${third}`;
  const claim = await listening(`${prefix}.${CLAIM_BYTE}`, CLAIM_PORT);
  if (!claim) return undefined;
  const address = (last: number): string => {
    if (!Number.isInteger(last) || last < 1 || last >= CLAIM_BYTE) {
      throw new RangeError(`${prefix}.0/24 has no address ${last} to give: 1 to ${CLAIM_BYTE - 1}`);
    }
    return `${prefix}.${last}`;
  };
  return { prefix, address, release: () => claim.release() };
};

/** A /24 of loopback addresses, claimed until it is released or this process ends. */
export const claimLoopbackRange = async (): Promise<LoopbackRange> => {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const range = await tryClaimLoopbackRange(randomInt(64, 128), randomInt(0, 256));
    if (range) return range;
  }
  throw new Error(
    `no free loopback range in ${ATTEMPTS} tries: is a program listening on 0.0.0.0:${CLAIM_PORT}?`,
  );
};
