import { connect, type Socket } from 'node:net';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { ProbeOutcome } from '#shared/domain/verdict.ts';
import { makeAuthority } from '#test/services/authority.ts';

import type { Via } from '../../../functions/health/probe/prober.ts';
import {
  BUDGET,
  CAPTIVE,
  CREDENTIALS,
  ESTABLISHED,
  PROXY_HOST,
  startParts,
  targetAt,
  via,
  type Parts,
} from './parts.ts';
import { answering, dripping, startPeer, startTlsPeer } from './servers.ts';

/** Milliseconds by which a busy machine may be late. */
const SLACK = 400;

let parts: Parts;
beforeAll(async () => {
  parts = await startParts();
});
afterAll(() => parts.close());

describe('a probe through a proxy that works', () => {
  it('tunnels to the echo with TLS end to end and learns the exit address', async () => {
    const reply = await parts.prober.probe(via(parts.open.port, { host: PROXY_HOST }), [parts.target], 5000);
    expect(reply).toStrictEqual({ outcome: 'Ok', exitAddress: '127.9.9.1' });
  });

  it('asks an http target in absolute form', async () => {
    const plain = targetAt(`http://127.0.0.1:${parts.plainEcho.port}/x?y=1`);
    const reply = await parts.prober.probe(via(parts.open.port, { host: PROXY_HOST }), [plain], 5000);
    expect(reply).toStrictEqual({ outcome: 'Ok', exitAddress: '127.9.9.1' });
  });

  it('speaks TLS to a proxy that is https itself', async () => {
    const endpoint = via(parts.secure.port, { host: PROXY_HOST, scheme: 'https' });
    const reply = await parts.prober.probe(endpoint, [parts.target], 5000);
    expect(reply).toStrictEqual({ outcome: 'Ok', exitAddress: '127.9.9.1' });
  });

  it('gives Basic credentials, any characters', async () => {
    const endpoint = { ...via(parts.guarded.port, { host: PROXY_HOST }), credentials: CREDENTIALS };
    expect((await parts.prober.probe(endpoint, [parts.target], 5000)).outcome).toBe('Ok');
  });

  it.each(['right of way', undefined])(
    'is told ProxyAuthFailed with the password %j (row 66)',
    async (password) => {
      const endpoint: Via = {
        ...via(parts.guarded.port, { host: PROXY_HOST }),
        ...(password === undefined ? {} : { credentials: { username: 'crawler', password } }),
      };
      const reply = await parts.prober.probe(endpoint, [parts.target], 5000);
      expect(reply.outcome).toBe('ProxyAuthFailed');
      expect(JSON.stringify(reply)).not.toContain('right of way');
    },
  );

  it('fetches every target within one budget, the exit address of the echo being kept', async () => {
    const page = targetAt(`http://127.0.0.1:${parts.plainEcho.port}/health`, 'page');
    const reply = await parts.prober.probe(
      via(parts.open.port, { host: PROXY_HOST }),
      [parts.target, page],
      5000,
    );
    expect(reply).toStrictEqual({ outcome: 'Ok', exitAddress: '127.9.9.1' });
  });

  it('goes directly as the control probe', async () => {
    expect(await parts.prober.probe(undefined, [parts.target], 5000)).toStrictEqual({
      outcome: 'Ok',
      exitAddress: '127.0.0.1',
    });
  });

  it('writes brackets around IPv6 in requests and none to sockets (row 71)', async () => {
    const lines: string[] = [];
    const proxy6 = await startPeer((socket) => {
      socket.once('data', (bytes: Buffer) => {
        lines.push(bytes.toString('latin1').split('\r\n')[0] ?? '');
        socket.end('HTTP/1.1 503 no\r\n\r\n');
      });
    }, '::1');
    const six = targetAt(`https://[::1]:${parts.echo6.port}/`);
    const tunnel = await parts.prober.probe(via(proxy6.port, { host: '::1' }), [six], 5000);
    expect(tunnel.outcome).toBe('TargetUnreachable');
    expect(lines).toStrictEqual([`CONNECT [::1]:${parts.echo6.port} HTTP/1.1`]);
    expect(await parts.prober.probe(undefined, [six], 5000)).toStrictEqual({
      outcome: 'Ok',
      exitAddress: '::1',
    });
    await proxy6.close();
  });
});

describe('a probe through a proxy that misbehaves', () => {
  const table: Record<string, [(socket: Socket) => void, ProbeOutcome]> = {
    'accepts and stays silent (row 68)': [() => undefined, 'Timeout'],
    'drips one byte at a time (row 68)': [dripping('HTTP/1.1 200', ' ', 50), 'Timeout'],
    'sends headers without end': [
      dripping('HTTP/1.1 200 OK\r\n', `x: ${'y'.repeat(900)}\r\n`, 1),
      'ProxyError',
    ],
    'closes on CONNECT (row 67)': [(socket) => socket.once('data', () => socket.destroy()), 'ConnectionLost'],
    'ends in the middle of the head': [answering('HTTP/1.1 200 OK\r\nx: '), 'ConnectionLost'],
    'wants another password (row 66)': [
      answering('HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="x"\r\n\r\n'),
      'ProxyAuthFailed',
    ],
    'wants a password without saying how (row 66)': [answering('HTTP/1.1 407 No\r\n\r\n'), 'ProxyAuthFailed'],
    'answers 401 (row 66)': [answering('HTTP/1.1 401 Unauthorized\r\n\r\n'), 'ProxyAuthFailed'],
    'cannot reach the target (row 70)': [answering('HTTP/1.1 502 Bad Gateway\r\n\r\n'), 'TargetUnreachable'],
    'has no DNS (row 70)': [answering('HTTP/1.1 503 Service Unavailable\r\n\r\n'), 'TargetUnreachable'],
    'fails by itself': [answering('HTTP/1.1 500 Oops\r\n\r\n'), 'ProxyError'],
    'forbids the target': [answering('HTTP/1.1 403 Forbidden\r\n\r\n'), 'ProxyError'],
    'is no proxy at all': [answering('SSH-2.0-OpenSSH_9.9\r\n\r\n'), 'ProxyError'],
    'answers everything with a page (row 65)': [answering(CAPTIVE, 'stay'), 'WrongContent'],
    'opens a tunnel into silence': [answering(ESTABLISHED, 'stay'), 'Timeout'],
    'opens a tunnel and closes it': [answering(ESTABLISHED), 'ConnectionLost'],
  };
  it.each(Object.entries(table))('that %s', async (_, [behave, outcome]) => {
    const server = await parts.peer(behave);
    const began = performance.now();
    const reply = await parts.prober.probe(via(server.port), [parts.target], BUDGET);
    const took = performance.now() - began;
    expect(reply.outcome).toBe(outcome);
    expect(took).toBeLessThan(BUDGET + SLACK);
    await expect.poll(() => server.open()).toBe(0);
  });

  it('that opens a tunnel to somebody else: TLS finds out (row 65)', async () => {
    const stranger = await (await makeAuthority('Stranger')).issue('127.0.0.1');
    const impostor = await startTlsPeer(answering(CAPTIVE), stranger);
    const proxy = await parts.peer((socket) => {
      socket.once('data', () => {
        const upstream = connect(impostor.port, '127.0.0.1');
        upstream.on('error', () => undefined);
        socket.write(ESTABLISHED);
        socket.pipe(upstream).pipe(socket);
      });
    });
    expect((await parts.prober.probe(via(proxy.port), [parts.target], BUDGET)).outcome).toBe('TlsInvalid');
    await impostor.close();
  });

  it('that refuses connections', async () => {
    const gone = await startPeer(() => undefined);
    await gone.close();
    expect((await parts.prober.probe(via(gone.port), [parts.target], BUDGET)).outcome).toBe('ConnectRefused');
  });

  it('whose name resolves to nothing', async () => {
    const endpoint = via(3128, { host: 'proxy.invalid' });
    expect((await parts.prober.probe(endpoint, [parts.target], 3000)).outcome).toMatch(
      /^Connect(Failed|Timeout)$/,
    );
  });

  it('that is said to speak TLS but does not', async () => {
    const server = await parts.peer(answering('HTTP/1.1 400 Bad Request\r\n\r\n'));
    const endpoint = via(server.port, { scheme: 'https' });
    expect((await parts.prober.probe(endpoint, [parts.target], BUDGET)).outcome).toBe('TlsInvalid');
  });
});
