import { once } from 'node:events';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';

import { describe, expect, test } from 'vitest';

import { claimablePorts, claimPort, tryClaimLoopbackRange, tryClaimPort } from '#test/services/ports.ts';

import { startScript } from './other-process.ts';

const PORTS = fileURLToPath(new URL('../../services/ports.ts', import.meta.url));

/** Another process that makes a claim, says so, and keeps it until it is killed. */
const elsewhere = (call: string) =>
  startScript(`
    const ports = await import(${JSON.stringify(PORTS)});
    const claim = await ports.${call};
    console.log(claim === undefined ? 'refused' : 'claimed');
    setTimeout(() => {}, 60_000);`);

describe('ports', () => {
  test.each([
    ['Linux by default', '32768\t60999\n', { first: 20_000, last: 32_767 }],
    ['an unreadable range', '', { first: 20_000, last: 32_767 }],
    ['a wide range that leaves some above', '1024 61000', { first: 61_001, last: 65_535 }],
    ['a range that leaves none', '1024 65535', { first: 20_000, last: 65_535 }],
  ])('are taken from outside those of outgoing connections: %s', (_name, range, expected) => {
    expect(claimablePorts(range)).toEqual(expected);
  });

  test('a claimed port can be listened on, on every address, and is given to nobody else', async () => {
    const claim = await claimPort();
    expect(await tryClaimPort(claim.port)).toBeUndefined();
    const server = createServer().listen(claim.port, '0.0.0.0');
    await once(server, 'listening');
    server.close();
    await claim.release();
  });

  test('a released port can be claimed again', async () => {
    const claim = await claimPort();
    await claim.release();
    const again = await tryClaimPort(claim.port);
    expect(again?.port).toBe(claim.port);
    await again?.release();
  });

  test('a port that a server listens on is not given out', async () => {
    const claim = await claimPort();
    await claim.release();
    const server = createServer().listen(claim.port, '127.0.0.1');
    await once(server, 'listening');
    expect(await tryClaimPort(claim.port)).toBeUndefined();
    server.close();
  });

  test('a claim of another process holds until that process dies, by SIGKILL too', async () => {
    const claim = await claimPort();
    await claim.release();
    const other = await elsewhere(`tryClaimPort(${claim.port})`);
    expect(other.output).toBe('claimed');
    expect(await tryClaimPort(claim.port)).toBeUndefined();
    await other.kill();
    const again = await tryClaimPort(claim.port);
    expect(again).toBeDefined();
    await again?.release();
  });
});

describe('loopback ranges', () => {
  test('a range is claimed once among all processes, and free again after its holder died', async () => {
    const third = process.pid % 256;
    const other = await elsewhere(`tryClaimLoopbackRange(60, ${third})`);
    expect(other.output).toBe('claimed');
    expect(await tryClaimLoopbackRange(60, third)).toBeUndefined();
    await other.kill();
    const range = await tryClaimLoopbackRange(60, third);
    expect(range?.prefix).toBe(`127.60.${third}`);
    await range?.release();
  });

  test('it gives addresses of the range except the one that holds the claim', async () => {
    const range = await tryClaimLoopbackRange(61, process.pid % 256);
    expect(range?.address(1)).toBe(`${range?.prefix}.1`);
    for (const last of [0, 254, 255, 1.5]) expect(() => range?.address(last)).toThrow('no address');
    await range?.release();
  });
});
