/** Request ids, and conditional lists, through the framework's own server. */

import type { Server } from 'node:http';

import { getTestServer } from '@google-cloud/functions-framework/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';

import { SystemError } from '#shared/app/errors.ts';
import { identified, requestScope } from '#shared/app/request-id.ts';
import { makeLog } from '#shared/app/log.ts';
import { serve } from '#shared/app/serve.ts';

import { makeParts } from './parts.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const parts = makeParts();
let server: Server;
let url = '';

beforeAll(async () => {
  serve('identified', parts.handler, parts.log);
  server = getTestServer('identified');
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  url = `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const JSON_TYPE = { 'content-type': 'application/json' };
const get = (path: string, headers: Record<string, string> = {}) => fetch(`${url}${path}`, { headers });
const idOf = (response: Response): string => response.headers.get('x-request-id') ?? '';

describe('a request id', () => {
  it.each<[string, Record<string, string>, string]>([
    ['the caller’s', { 'x-request-id': 'crawl-7/fetch:12' }, 'crawl-7/fetch:12'],
    [
      'the caller’s before that of its trace',
      { 'x-request-id': 'a', traceparent: `00-${TRACE}-b7ad6b7169203331-01` },
      'a',
    ],
    ['that of the W3C trace', { traceparent: `00-${TRACE}-b7ad6b7169203331-01` }, TRACE],
    ['that of the platform’s trace', { 'x-cloud-trace-context': `${TRACE}/123;o=1` }, TRACE],
    ['a new one', {}, 'made-here'],
    ['a new one for an empty one', { 'x-request-id': '' }, 'made-here'],
    ['a new one for one with spaces', { 'x-request-id': 'a b' }, 'made-here'],
    ['a new one for one that is markup', { 'x-request-id': '<script>' }, 'made-here'],
    ['a new one for one of 129 characters', { 'x-request-id': 'x'.repeat(129) }, 'made-here'],
    ['a new one for a trace that is none', { traceparent: '00-x-y-z' }, 'made-here'],
  ])('is %s', async (_which, headers, expected) => {
    expect(idOf(await get('/health', headers))).toBe(expected);
  });

  it('stands in every problem too, also where the framework refuses', async () => {
    const headers = { ...JSON_TYPE, 'x-request-id': 'mine' };
    const post = (body: string) => fetch(`${url}/v1/leases`, { method: 'POST', headers, body });
    for (const response of [await get('/v1/nothing', headers), await post('{}'), await post('{"holder":')]) {
      expect(response.status).toBeGreaterThanOrEqual(400);
      expect(idOf(response)).toBe('mine');
      expect(await response.json()).toMatchObject({ requestId: 'mine' });
    }
    const done = await fetch(`${url}/v1/leases/uid.${'0'.repeat(32)}`, { method: 'DELETE', headers });
    expect([done.status, idOf(done)]).toEqual([204, 'mine']);
  });

  it('stands in the log lines of its own request, with its trace, and in no other’s', async () => {
    const lines: string[] = [];
    const scope = requestScope();
    const log = makeLog((line) => lines.push(line), {}, scope.fields);
    const handler = identified(
      async ({ path }) => {
        await Promise.resolve();
        log.info(`at ${path}`, { caused: scope.traceparent() });
        throw new SystemError('Transient', `away at ${path}`);
      },
      { ids: { uuid: () => '' }, log, scope, projectId: 'p' },
    );
    const ask = (id: string, more: Record<string, string> = {}) =>
      handler({
        method: 'GET',
        path: id,
        query: new URLSearchParams(),
        headers: { 'x-request-id': id, ...more },
        body: new Uint8Array(),
      });
    const trace = { 'x-cloud-trace-context': `${TRACE}/1` };
    const replies = await Promise.all([ask('one', trace), ask('two')]);
    expect(replies).toMatchObject([
      { status: 503, headers: { 'x-request-id': 'one', 'retry-after': '2' }, body: { requestId: 'one' } },
      { status: 503, headers: { 'x-request-id': 'two' }, body: { requestId: 'two' } },
    ]);
    const seen = lines.map((line) =>
      z.looseObject({ requestId: z.string(), message: z.string() }).parse(JSON.parse(line)),
    );
    expect(seen.map(({ requestId, message }) => `${requestId}: ${message}`).toSorted()).toEqual([
      'one: GET request failed',
      'one: at one',
      'two: GET request failed',
      'two: at two',
    ]);
    const traced = seen.filter((line) => 'logging.googleapis.com/trace' in line);
    expect(traced).toMatchObject([
      {
        requestId: 'one',
        'logging.googleapis.com/trace': `projects/p/traces/${TRACE}`,
        'logging.googleapis.com/spanId': '0000000000000001',
        caused: `00-${TRACE}-0000000000000001-00`,
      },
      { requestId: 'one' },
    ]);
    log.info('outside');
    expect(lines.at(-1)).not.toContain('requestId');
  });
});

describe('a list', () => {
  it('is not sent again to who has it as it is, and is when it has changed', async () => {
    const first = await get('/v1/proxies');
    const tag = first.headers.get('etag') ?? '';
    expect(tag).toMatch(/^"[0-9a-f]{32}"$/);
    expect(first.headers.get('cache-control')).toBe('private, no-cache');
    for (const named of [tag, `W/${tag}`, `"other", ${tag}`, '*']) {
      const again = await get('/v1/proxies', { 'if-none-match': named });
      expect([again.status, again.headers.get('etag'), await again.text()]).toEqual([304, tag, '']);
    }
    expect((await get('/v1/proxies', { 'if-none-match': '"other"' })).status).toBe(200);

    parts.fake.write((before) => ({ ...before, gate: { ...before.gate, open: false } }));
    const changed = await get('/v1/proxies', { 'if-none-match': tag });
    expect([changed.status, await changed.json()]).toEqual([200, { items: [] }]);
    expect(changed.headers.get('etag')).not.toBe(tag);
  });
});
