import { describe, expect, it } from 'vitest';

import type { HttpRequest } from '#shared/app/http.ts';

import { makeHandler } from '../../../functions/echo/handler.ts';

const request = (query: string, more: Partial<HttpRequest> = {}): HttpRequest => ({
  method: 'GET',
  path: '/',
  query: new URLSearchParams(query),
  headers: {},
  body: new Uint8Array(),
  peer: '192.0.2.1',
  ...more,
});

const handler = makeHandler();

describe('echo', () => {
  const seen: Record<string, [string | undefined, string | undefined, string]> = {
    'the peer of the socket without a front end': [undefined, '192.0.2.1', '192.0.2.1'],
    'what the front end saw': ['198.51.100.7', '10.0.0.1', '198.51.100.7'],
    'the last entry, since a caller can only prepend': [
      '203.0.113.9, 198.51.100.7',
      '10.0.0.1',
      '198.51.100.7',
    ],
    'the peer when the header is no address': ['203.0.113.9, unknown', '192.0.2.1', '192.0.2.1'],
    'IPv6 as it is': ['2001:db8::7', '10.0.0.1', '2001:db8::7'],
    'IPv4 out of its IPv6 form': [undefined, '::ffff:192.0.2.1', '192.0.2.1'],
  };
  for (const [title, [forwarded, peer, expected]] of Object.entries(seen)) {
    it(`reports ${title}`, async () => {
      const { peer: _, ...base } = request('nonce=abc-DEF_1');
      const reply = await handler({
        ...base,
        headers: { 'x-forwarded-for': forwarded },
        ...(peer === undefined ? {} : { peer }),
      });
      expect(reply).toStrictEqual({
        status: 200,
        headers: { 'cache-control': 'no-store' },
        body: { nonce: 'abc-DEF_1', address: expected },
      });
    });
  }

  it.each(['', 'nonce=', `nonce=${'a'.repeat(129)}`, 'nonce=a%0d%0ab', 'nonce=%3Cb%3E', 'other=1'])(
    'refuses %j with a problem that names the field',
    async (query) => {
      const reply = await handler(request(query));
      expect(reply.status).toBe(400);
      expect(reply.headers).toMatchObject({ 'content-type': 'application/problem+json' });
      expect(reply.body).toMatchObject({ code: 'InvalidRequest', field: 'nonce' });
    },
  );

  it.each(['POST', 'HEAD', 'DELETE'])('answers %s with 405', async (method) => {
    const reply = await handler(request('nonce=a', { method }));
    expect(reply).toMatchObject({ status: 405, headers: { allow: 'GET' } });
  });

  it('says on /health that it is there', async () => {
    const reply = await handler(request('', { path: '/health' }));
    expect(reply.status).toBe(200);
  });
});
