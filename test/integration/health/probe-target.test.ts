import type { Socket } from 'node:net';
import { TLSSocket, createSecureContext } from 'node:tls';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { systemIds } from '#shared/app/ids.ts';
import type { ProbeOutcome } from '#shared/domain/verdict.ts';
import { makeAuthority } from '#test/services/authority.ts';

import { makeProber } from '../../../functions/health/probe/prober.ts';
import type { Target } from '../../../functions/health/probe/target.ts';
import { BUDGET, CAPTIVE, PROXY_HOST, startParts, targetAt, via, type Parts } from './parts.ts';
import { answering, dripping, echoAnswer, startTarget, tunnelTo } from './servers.ts';

let parts: Parts;
beforeAll(async () => {
  parts = await startParts();
});
afterAll(() => parts.close());

describe('a probe of a target that misbehaves, through a good proxy', () => {
  const secureTable: Record<string, [(socket: Socket) => void, ProbeOutcome]> = {
    'sends a body without end': [dripping('HTTP/1.1 200 OK\r\n\r\n', 'x'.repeat(4000), 1), 'WrongContent'],
    'sends one byte of it at a time (row 68)': [
      dripping('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n', 'x', 50),
      'Timeout',
    ],
    'answers without the nonce': [
      answering('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{"nonce":"x","address":"192.0.2.1"}'),
      'WrongContent',
    ],
    'answers with a page': [answering(CAPTIVE), 'WrongContent'],
    'redirects (row 65)': [answering('HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n'), 'WrongContent'],
    'refuses (row 64)': [answering('HTTP/1.1 503 Busy\r\n\r\n'), 'TargetRefused'],
    'closes at once': [(socket) => socket.once('data', () => socket.destroy()), 'ConnectionLost'],
    'frames its body in two ways': [
      answering('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'),
      'WrongContent',
    ],
  };
  it.each(Object.entries(secureTable))('that %s', async (_, [behave, outcome]) => {
    const server = await parts.tlsPeer(behave);
    const url = `https://127.0.0.1:${server.port}/`;
    const reply = await parts.prober.probe(
      via(parts.open.port, { host: PROXY_HOST }),
      [targetAt(url)],
      BUDGET,
    );
    expect(reply.outcome).toBe(outcome);
    await expect.poll(() => server.open()).toBe(0);
  });

  it.each([
    ['for another name', 'example.org', undefined],
    ['out of date', '127.0.0.1', new Date(Date.now() - 60_000)],
  ])('whose certificate is %s', async (_, host, notAfter) => {
    const server = await parts.tlsPeer(answering(CAPTIVE), host, notAfter);
    const url = `https://127.0.0.1:${server.port}/`;
    const reply = await parts.prober.probe(
      via(parts.open.port, { host: PROXY_HOST }),
      [targetAt(url)],
      BUDGET,
    );
    expect(reply.outcome).toBe('TlsInvalid');
  });

  const plainTable: Record<string, [string, Target['kind'], ProbeOutcome]> = {
    'proxy that cannot reach it (row 70)': [
      'HTTP/1.1 504 Gateway Timeout\r\n\r\n',
      'echo',
      'TargetUnreachable',
    ],
    'proxy that wants a password (row 66)': ['HTTP/1.1 407 No\r\n\r\n', 'page', 'ProxyAuthFailed'],
    'proxy that says so with 401 (row 66)': ['HTTP/1.1 401 No\r\n\r\n', 'echo', 'ProxyAuthFailed'],
    'page that wants a password': ['HTTP/1.1 401 No\r\n\r\n', 'page', 'TargetRefused'],
    'page that is gone': ['HTTP/1.1 404 Not Found\r\n\r\n', 'page', 'TargetRefused'],
    'page that moved': ['HTTP/1.1 301 Moved\r\n\r\n', 'page', 'WrongContent'],
    'page without content': ['HTTP/1.1 204 No Content\r\n\r\n', 'page', 'Ok'],
    'page behind interim answers': ['HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\n\r\n', 'page', 'Ok'],
  };
  it.each(Object.entries(plainTable))('in absolute form: a %s', async (_, [text, kind, outcome]) => {
    const server = await parts.peer(answering(text));
    const reply = await parts.prober.probe(
      via(server.port),
      [targetAt('http://example.invalid/', kind)],
      BUDGET,
    );
    expect(reply.outcome).toBe(outcome);
  });
});

describe('many probes', () => {
  it('leave no socket and no timer behind, whatever they met', async () => {
    const silent = await parts.peer(() => undefined);
    const before = process.getActiveResourcesInfo().length;
    const endpoints = [via(silent.port), via(parts.open.port, { host: PROXY_HOST }), via(1)];
    await Promise.all(
      Array.from({ length: 150 }, (_, index) =>
        parts.prober.probe(endpoints[index % 3] ?? via(1), [parts.target], 3000),
      ),
    );
    await expect.poll(() => silent.open() + parts.echo.open()).toBe(0);
    await expect.poll(() => process.getActiveResourcesInfo().length).toBeLessThanOrEqual(before + 2);
  });

  it('are on time beside others that hang (row 68)', async () => {
    const silent = await parts.peer(() => undefined);
    const hanging = Array.from({ length: 50 }, () =>
      parts.prober.probe(via(silent.port), [parts.target], 2000),
    );
    const began = performance.now();
    expect(
      (await parts.prober.probe(via(parts.open.port, { host: PROXY_HOST }), [parts.target], 2000)).outcome,
    ).toBe('Ok');
    expect(performance.now() - began).toBeLessThan(1000);
    expect((await Promise.all(hanging)).every(({ outcome }) => outcome === 'Timeout')).toBe(true);
  });

  it('that stops resuming sessions is asked for its certificate again', async () => {
    const authority = await makeAuthority();
    const resumed: boolean[] = [];
    const echo = await startTarget(
      (request, response) => {
        resumed.push(request.socket instanceof TLSSocket && request.socket.isSessionReused());
        echoAnswer(request, response);
      },
      await authority.issue('127.0.0.1'),
    );
    // Whoever is in between has a certificate as well, from somebody whom we do not trust.
    const between = await parts.tlsPeer(answering(CAPTIVE));
    const honest = await parts.peer(tunnelTo(echo.port));
    const intercepting = await parts.peer(tunnelTo(between.port));
    const prober = makeProber(createSecureContext({ ca: [authority.caPem] }), systemIds);
    const probe = async (proxy: { readonly port: number }): Promise<ProbeOutcome> =>
      (await prober.probe(via(proxy.port), [targetAt(`https://127.0.0.1:${echo.port}/`)], BUDGET)).outcome;
    try {
      expect([await probe(honest), await probe(honest)]).toEqual(['Ok', 'Ok']);
      expect(await probe(intercepting)).toBe('TlsInvalid');
      expect([await probe(honest), await probe(honest)]).toEqual(['Ok', 'Ok']);
      expect(resumed).toEqual([false, true, false, true]);
    } finally {
      await echo.close();
    }
  });
});
