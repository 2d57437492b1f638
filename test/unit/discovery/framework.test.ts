import type { Server } from 'node:http';
import { connect } from 'node:net';

import { getTestServer } from '@google-cloud/functions-framework/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';

import { serve } from '#shared/app/serve.ts';

import { makeParts } from './parts.ts';

const problemSchema = z.object({
  status: z.int(),
  code: z.string(),
  title: z.string(),
  detail: z.string(),
  errors: z.array(z.object({ field: z.string(), detail: z.string() })).optional(),
});

let server: Server;
let port = 0;

beforeAll(async () => {
  const { handler, log } = makeParts();
  serve('discovery-under-test', handler, log);
  server = getTestServer('discovery-under-test');
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  port = typeof address === 'object' && address ? address.port : 0;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

interface Sent {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array<ArrayBuffer>;
}

const send = async ({ method = 'POST', path = '/v1/leases', headers, body }: Sent): Promise<Response> =>
  fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body }),
  });

const problemOf = async (response: Response): Promise<z.output<typeof problemSchema>> => {
  expect(response.headers.get('content-type')).toBe('application/problem+json');
  const body = problemSchema.parse(await response.json());
  expect(body.status).toBe(response.status);
  return body;
};

/** `fetch` would repair such a path. */
const rawRequest = async (line: string): Promise<string> => {
  const socket = connect(port, '127.0.0.1');
  socket.write(`${line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  const chunks: Buffer[] = [];
  for await (const chunk of socket) if (Buffer.isBuffer(chunk)) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
};

describe('what the framework refuses before the handler runs is problem+json as well', () => {
  it.each<[string, Sent, number, string]>([
    ['malformed JSON', { body: '{"holder":' }, 400, 'MalformedBody'],
    ['JSON that is no object', { body: '"x"' }, 400, 'MalformedBody'],
    [
      'an unknown charset',
      { body: '{}', headers: { 'content-type': 'application/json; charset=klingon' } },
      415,
      'UnsupportedMediaType',
    ],
    [
      'an unknown encoding',
      { body: '{}', headers: { 'content-encoding': 'zip' } },
      415,
      'UnsupportedEncoding',
    ],
    [
      'a broken encoding',
      { body: 'not gzip', headers: { 'content-encoding': 'gzip' } },
      400,
      'MalformedBody',
    ],
  ])('%s', async (_what, sent, status, code) => {
    const response = await send(sent);
    expect(response.status).toBe(status);
    expect(await problemOf(response)).toMatchObject({ code });
  });

  it('a path that does not decode, with no HTML and no stack', async () => {
    const reply = await rawRequest('GET /v1/leases/%ff');
    expect(reply).toContain('HTTP/1.1 400');
    expect(reply).toContain('application/problem+json');
    expect(reply).not.toMatch(/<html|node_modules|at .*\.js/i);
  });
});

describe('bad input is refused with the name of the field', () => {
  const holder = 'h';
  it.each<[string, Sent, number, string, string | undefined]>([
    ['no holder', { body: '{}' }, 400, 'InvalidRequest', 'holder'],
    ['a number as holder', { body: '{"holder":7}' }, 400, 'InvalidRequest', 'holder'],
    ['a control character', { body: JSON.stringify({ holder: 'a\nb' }) }, 400, 'InvalidRequest', 'holder'],
    ['half a character', { body: '{"holder":"\\ud800"}' }, 400, 'InvalidRequest', 'holder'],
    ['an unknown field', { body: JSON.stringify({ holder, ttl: 5 }) }, 400, 'InvalidRequest', 'ttl'],
    ['a short ttl', { body: JSON.stringify({ holder, ttlSeconds: 9 }) }, 400, 'InvalidRequest', 'ttlSeconds'],
    [
      'a long ttl',
      { body: JSON.stringify({ holder, ttlSeconds: 86_401 }) },
      400,
      'InvalidRequest',
      'ttlSeconds',
    ],
    [
      'half a second',
      { body: JSON.stringify({ holder, ttlSeconds: 10.5 }) },
      400,
      'InvalidRequest',
      'ttlSeconds',
    ],
    [
      'a name that is none',
      { body: JSON.stringify({ holder, proxy: { namespace: 'a', name: 'A' } }) },
      400,
      'InvalidRequest',
      'proxy.name',
    ],
    [
      'a bad selector',
      { body: JSON.stringify({ holder, labelSelector: 'a in b' }) },
      400,
      'InvalidRequest',
      'labelSelector',
    ],
    [
      'a bad selector in the query',
      { method: 'GET', path: '/v1/proxies?labelSelector=a%20in%20b' },
      400,
      'InvalidRequest',
      'labelSelector',
    ],
    ['a bad limit', { method: 'GET', path: '/v1/proxies?limit=0' }, 400, 'InvalidRequest', 'limit'],
    ['a bad token', { method: 'GET', path: '/v1/proxies?continue=x' }, 400, 'InvalidRequest', 'continue'],
    [
      'a parameter twice',
      { method: 'GET', path: '/v1/proxies?zone=a&zone=b' },
      400,
      'InvalidRequest',
      'zone',
    ],
    ['an unknown parameter', { method: 'GET', path: '/v1/proxies?x=1' }, 400, 'InvalidRequest', 'x'],
    ['a list without holder', { method: 'GET', path: '/v1/leases' }, 400, 'InvalidRequest', 'holder'],
    [
      'an empty key',
      { body: JSON.stringify({ holder }), headers: { 'idempotency-key': '' } },
      400,
      'InvalidRequest',
      'Idempotency-Key',
    ],
    [
      'an unknown outcome',
      { path: `/v1/leases/u.${'0'.repeat(32)}/report`, body: '{"outcome":"bad"}' },
      400,
      'InvalidRequest',
      'outcome',
    ],
    [
      'bytes that are no UTF-8',
      { body: new Uint8Array([0x22, 0xff, 0x22]) },
      400,
      'MalformedBody',
      undefined,
    ],
    [
      'another content type',
      { body: 'holder=h', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
      415,
      'UnsupportedMediaType',
      undefined,
    ],
    [
      'a large body',
      { body: JSON.stringify({ holder: 'x'.repeat(65_536) }) },
      413,
      'BodyTooLarge',
      undefined,
    ],
    [
      'a huge body that is no JSON',
      { body: 'x'.repeat(5_000_000), headers: { 'content-type': 'text/plain' } },
      413,
      'BodyTooLarge',
      undefined,
    ],
    ['an unknown path', { path: '/v1/nothing', body: '{}' }, 404, 'NotFound', undefined],
    ['an unknown lease', { method: 'GET', path: '/v1/leases/nonsense' }, 404, 'NotFound', undefined],
    [
      'an encoded slash',
      { method: 'GET', path: `/v1/leases/${encodeURIComponent(`../x.${'0'.repeat(32)}`)}` },
      404,
      'NotFound',
      undefined,
    ],
  ])('%s', async (_what, sent, status, code, field) => {
    const response = await send(sent);
    expect(response.status).toBe(status);
    const body = await problemOf(response);
    expect(body.code).toBe(code);
    expect(body.errors?.[0]?.field).toBe(field);
  });

  it('a wrong method is told the right ones', async () => {
    const response = await send({ method: 'PUT', path: '/v1/leases', body: '{}' });
    expect(response.status).toBe(405);
    expect(response.headers.get('allow')).toBe('GET, HEAD, POST');
    expect(await problemOf(response)).toMatchObject({ code: 'MethodNotAllowed' });
  });

  it('none of it takes a slot, and a good request gets one', async () => {
    const list = await fetch(`http://127.0.0.1:${port}/v1/proxies?free=true`);
    expect(await list.json()).toMatchObject({ items: [{ live: 0 }] });
    const good = await send({ body: '{"holder":"h"}' });
    expect(good.status).toBe(201);
    expect(await good.json()).toMatchObject({ url: 'http://203.0.113.7:3128', holder: 'h' });
  });
});
