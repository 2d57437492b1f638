/** Loops of probes, and of the bare connections that they are compared with. */

import { connect } from 'node:net';
import { connect as connectTls, type SecureContext } from 'node:tls';

import { parseTarget, type Target } from '../../../functions/health/probe/target.ts';

/** The `index`-th of 16 million loopback addresses. */
export const hostOf = (index: number): string =>
  `127.${30 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`;

export const placeOf = (index: number, port: number) => ({
  host: hostOf(index),
  port,
  scheme: 'http' as const,
});

export const targetOf = (url: string): Target => {
  const target = parseTarget(url, 'echo');
  if (!target) throw new TypeError(`no target: ${url}`);
  return target;
};

/** Calls per second of `count` calls, `inFlight` at a time. */
export const rateOf = async (
  count: number,
  inFlight: number,
  call: (index: number) => Promise<void>,
): Promise<number> => {
  let next = 0;
  const began = performance.now();
  const worker = async (): Promise<void> => {
    while (next < count) await call(next++);
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
  return (count * 1000) / (performance.now() - began);
};

export const bareConnect = (host: string, port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host, port, noDelay: true });
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.destroy();
      resolve();
    });
  });

export const bareHandshake = (host: string, port: number, secureContext: SecureContext): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = connectTls({ host, port, secureContext, checkServerIdentity: () => undefined });
    socket.once('error', reject);
    socket.once('secureConnect', () => {
      socket.destroy();
      resolve();
    });
  });

export const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
