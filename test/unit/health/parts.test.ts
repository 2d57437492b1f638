import { describe, expect, it } from 'vitest';

import { parseConfig } from '#shared/app/config.ts';
import { SystemError, hasCode } from '#shared/app/errors.ts';
import { systemClock } from '#shared/app/clock.ts';
import type { HttpRequest } from '#shared/app/http.ts';
import { systemIds } from '#shared/app/ids.ts';
import { makeLog } from '#shared/app/log.ts';
import { noMetrics } from '#shared/app/metrics.ts';

import { configSchema, settingsOf } from '../../../functions/health/config.ts';
import { makeHandler } from '../../../functions/health/handler.ts';
import { inPool, makePool } from '../../../functions/health/pool.ts';
import { parseTarget, pathWithNonce, sameAddress } from '../../../functions/health/probe/target.ts';
import { loadTrust } from '../../../functions/health/trust.ts';

const ENV = {
  GOOGLE_CLOUD_PROJECT: 'p',
  INSTALLATION_ID: 'prod',
  PROBE_TARGET_URL: 'https://echo.example/x?y',
};

describe('configuration', () => {
  it('has defaults for all but three keys', () => {
    expect(parseConfig(configSchema, ENV)).toMatchObject({
      FIRESTORE_DATABASE: '(default)',
      CREDENTIALS_DATABASE: 'credentials',
      PROXY_CHANGES_TOPIC: 'proxy-changes',
      PROBE_TARGET_URL: { kind: 'echo', secure: true, authority: 'echo.example:443', path: '/x?y' },
    });
  });

  it('is refused with all of its problems in one message', () => {
    const env = { INSTALLATION_ID: 'No', PROBE_TARGET_URL: 'ftp://x' };
    expect(() => parseConfig(configSchema, env)).toThrow(
      /GOOGLE_CLOUD_PROJECT: is required[^]*INSTALLATION_ID[^]*PROBE_TARGET_URL: must be an http or https URL/,
    );
  });

  it('asks for an ID token for the echo, and for nothing else, only when told whom it is made out to', () => {
    const second = 'https://page.example/';
    const targetsWith = (audience: Record<string, string>) =>
      settingsOf(
        parseConfig(configSchema, { ...ENV, PROBE_SECOND_TARGET_URL: second, ...audience }),
      ).targets.map((one) => one.audience);
    expect(targetsWith({})).toStrictEqual([undefined, undefined]);
    const audience = 'https://echo.example';
    expect(targetsWith({ PROBE_TARGET_AUDIENCE: audience })).toStrictEqual([audience, undefined]);
    const plain = { ...ENV, PROBE_TARGET_URL: 'http://echo.example/', PROBE_TARGET_AUDIENCE: audience };
    expect(() => parseConfig(configSchema, plain)).toThrow(/PROBE_TARGET_AUDIENCE: needs an https URL/);
  });

  it('names an authority file that cannot be used', () => {
    expect(() => loadTrust('/nowhere/ca.pem')).toThrow('PROBE_CA_FILE: /nowhere/ca.pem is not usable');
    expect(() => loadTrust(import.meta.filename)).toThrow('PROBE_CA_FILE');
  });
});

const noncePath = (url: string) => {
  const parsed = parseTarget(url, 'echo');
  return parsed && pathWithNonce(parsed, 'n');
};

describe('targets', () => {
  it.each([
    ['http://example.org', 'example.org:80', '/', { host: 'example.org', port: 80 }],
    ['https://[2001:db8::1]:8443/a?b=c', '[2001:db8::1]:8443', '/a?b=c', { host: '2001:db8::1', port: 8443 }],
    ['https://user:pass@example.org/', 'example.org:443', '/', { host: 'example.org', port: 443 }],
  ])('%s is asked for as %s%s (row 71)', (url, authority, path, place) => {
    expect(parseTarget(url, 'page')).toMatchObject({ authority, path, place });
  });

  it.each(['', 'example.org', 'ftp://example.org/', 'https://', 'javascript:1'])('%j is none', (url) => {
    expect(parseTarget(url, 'page')).toBeUndefined();
  });

  it('get the nonce behind what is there', () => {
    expect(noncePath('https://x/')).toBe('/?nonce=n');
    expect(noncePath('https://x/a?b=c')).toBe('/a?b=c&nonce=n');
  });

  it('addresses are compared by what they mean', () => {
    expect(sameAddress('2001:db8:0:0::1', '2001:DB8::1')).toBe(true);
    expect(sameAddress('192.0.2.1', '192.0.2.10')).toBe(false);
    expect(sameAddress('192.0.2.1', '')).toBe(false);
  });
});

describe('pools', () => {
  it('let in as many as they hold, in turn', async () => {
    const pool = makePool(2);
    const order: number[] = [];
    const gates = [0, 1, 2, 3].map(() => Promise.withResolvers<void>());
    const runs = gates.map((gate, index) =>
      inPool(pool, pool, 60_000, async () => {
        order.push(index);
        await gate.promise;
      }),
    );
    await expect.poll(() => order).toStrictEqual([0, 1]);
    gates[1]?.resolve();
    await expect.poll(() => order).toStrictEqual([0, 1, 2]);
    for (const gate of gates) gate.resolve();
    await Promise.all(runs);
    expect(order).toStrictEqual([0, 1, 2, 3]);
    expect([pool.tryAcquire(), pool.tryAcquire(), pool.tryAcquire()].map(Boolean)).toStrictEqual([
      true,
      true,
      false,
    ]);
  });

  it('what takes long makes room for others, as far as the overflow goes', async () => {
    const [pool, overflow] = [makePool(1), makePool(1)];
    const stuck = Promise.withResolvers<void>();
    let began = 0;
    const run = () =>
      inPool(pool, overflow, 5, () => {
        began += 1;
        return stuck.promise;
      });
    const runs = [run(), run(), run()];
    // The first has moved over; the second has nowhere to go, so that the third waits.
    await expect.poll(() => began).toBe(2);
    expect(overflow.tryAcquire()).toBeUndefined();
    expect(began).toBe(2);
    stuck.resolve();
    await Promise.all(runs);
    expect(began).toBe(3);
    expect([pool.tryAcquire(), overflow.tryAcquire()].map(Boolean)).toStrictEqual([true, true]);
  });

  it('a failure gives its slot back', async () => {
    const pool = makePool(1);
    await expect(inPool(pool, pool, 5, () => Promise.reject(new TypeError('x')))).rejects.toThrow('x');
    expect(pool.tryAcquire()).toBeDefined();
  });
});

const away = (): Promise<never> => Promise.reject(new SystemError('Transient', 'Firestore is away'));
const target = parseTarget('https://echo.example/', 'echo');
if (!target) throw new TypeError('no target');
const handler = makeHandler({
  installation: 'test',
  records: { read: away, write: away, probed: away },
  views: { write: away },
  rounds: { claim: away },
  credentials: { read: away },
  publisher: { change: away },
  prober: { probe: () => Promise.resolve({ outcome: 'Ok' }) },
  targets: [target],
  shards: 1,
  probesAtOnce: 64,
  clock: systemClock,
  ids: systemIds,
  log: makeLog(() => undefined),
  metrics: noMetrics,
});
const request = (method: string, path: string, body = ''): HttpRequest => ({
  method,
  path,
  query: new URLSearchParams(),
  headers: {},
  body: new TextEncoder().encode(body),
});

describe('the handler', () => {
  it('knows its paths', async () => {
    expect(await handler(request('GET', '/health'))).toMatchObject({ status: 200 });
    expect(await handler(request('GET', '/'))).toMatchObject({ status: 405, headers: { allow: 'POST' } });
    expect(await handler(request('POST', '/health'))).toMatchObject({
      status: 405,
      headers: { allow: 'GET' },
    });
    expect(await handler(request('POST', '/x'))).toMatchObject({ status: 404 });
    expect(await handler(request('constructor', '/'))).toMatchObject({ status: 405 });
  });

  it('lets an outage of Firestore through, so that it is answered with 503, round and message alike', async () => {
    const data = Buffer.from('{"uid":"00000000-0000-4000-8000-000000000000","reason":"published"}');
    const push = JSON.stringify({ message: { data: data.toString('base64'), messageId: '1' } });
    for (const [path, body] of [
      ['/', ''],
      ['/', ''],
      ['/probes', push],
    ] as const) {
      const failure = await handler(request('POST', path, body)).catch((error: unknown) => error);
      expect(hasCode(failure, 'Transient')).toBe(true);
    }
  });
});
