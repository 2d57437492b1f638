/** What tests of probes share: an authority, the echo in three forms, and proxies that work. */

import { createSecureContext } from 'node:tls';

import { systemIds } from '#shared/app/ids.ts';
import { startForwardProxy, type ForwardProxy } from '#test/compute/forward-proxy.ts';
import { makeAuthority, type Authority } from '#test/services/authority.ts';

import { makeProber, type Prober, type Via } from '../../../functions/health/probe/prober.ts';
import { parseTarget, type Target } from '../../../functions/health/probe/target.ts';
import {
  echoAnswer,
  startPeer,
  startTarget,
  startTlsPeer,
  tunnelTo,
  type Behaviour,
  type TestServer,
} from './servers.ts';

/** Milliseconds of a probe that is meant to run out of time. */
export const BUDGET = 600;
export const CREDENTIALS = { username: 'crawler', password: 'p:ä s' };
export const PROXY_HOST = '127.9.9.1';

export const ESTABLISHED = 'HTTP/1.1 200 Connection established\r\n\r\n';
const PAGE = '<html>Please log in</html>';
export const CAPTIVE = `HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: ${PAGE.length}\r\n\r\n${PAGE}`;

export const targetAt = (url: string, kind: Target['kind'] = 'echo'): Target => {
  const parsed = parseTarget(url, kind);
  if (!parsed) throw new TypeError(`no target: ${url}`);
  return parsed;
};

export const via = (port: number, more: Partial<Via['endpoint']> = {}): Via => ({
  endpoint: { host: '127.0.0.1', port, scheme: 'http', ...more },
});

export interface Parts {
  readonly authority: Authority;
  readonly prober: Prober;
  readonly echo: TestServer;
  readonly echo6: TestServer;
  readonly plainEcho: TestServer;
  /** The echo over TLS. */
  readonly target: Target;
  /** Proxies at `PROXY_HOST`: open to all, with `CREDENTIALS`, over TLS. */
  readonly open: ForwardProxy;
  readonly guarded: ForwardProxy;
  readonly secure: ForwardProxy;
  /** What `guarded` wants. */
  readonly credentials: typeof CREDENTIALS;
  /** Tunnels to `target`, on every loopback address, and always leaves from 127.0.0.1. */
  readonly tunnel: TestServer;
  /** A peer that is closed with the rest. */
  peer(behave: Behaviour): Promise<TestServer>;
  tlsPeer(behave: Behaviour, hosts?: string, notAfter?: Date): Promise<TestServer>;
  close(): Promise<void>;
}

export const startParts = async (): Promise<Parts> => {
  const authority = await makeAuthority();
  const certificate = await authority.issue(['127.0.0.1', PROXY_HOST, '::1', 'localhost']);
  const tls = { key: certificate.keyPem, cert: certificate.certPem };
  const servers: TestServer[] = [];
  const kept = async (starting: Promise<TestServer>): Promise<TestServer> => {
    const server = await starting;
    servers.push(server);
    return server;
  };
  const [echo, echo6, plainEcho, open, guarded, secure] = await Promise.all([
    kept(startTarget(echoAnswer, certificate)),
    kept(startTarget(echoAnswer, certificate, '::1')),
    kept(startTarget(echoAnswer)),
    startForwardProxy({ host: PROXY_HOST, port: 0 }),
    startForwardProxy({ host: PROXY_HOST, port: 0, credentials: CREDENTIALS }),
    startForwardProxy({ host: PROXY_HOST, port: 0, tls }),
  ]);
  const tunnel = await kept(startPeer(tunnelTo(echo.port), '0.0.0.0'));
  return {
    authority,
    credentials: CREDENTIALS,
    tunnel,
    prober: makeProber(createSecureContext({ ca: [authority.caPem] }), systemIds),
    echo,
    echo6,
    plainEcho,
    target: targetAt(`https://127.0.0.1:${echo.port}/`),
    open,
    guarded,
    secure,
    peer: (behave) => kept(startPeer(behave)),
    tlsPeer: async (behave, host = '127.0.0.1', notAfter) =>
      kept(startTlsPeer(behave, await authority.issue(host, notAfter ? { notAfter } : {}))),
    close: async () => {
      await Promise.all([open.stop(), guarded.stop(), secure.stop()]);
      await Promise.all(servers.map((server) => server.close()));
    },
  };
};
