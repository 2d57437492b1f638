import { beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';

import type { HttpHandler } from '#shared/app/http.ts';

import { acquire, call, openFleet, proxyRecord, type Fleet } from './fixture.ts';

let fleet: Fleet;
let discovery: HttpHandler;

beforeEach(() => {
  fleet = openFleet();
  discovery = fleet.instance();
  return () => fleet.close();
});

const pageSchema = z.object({ items: z.array(z.unknown()), continue: z.string().optional() });

describe('GET /v1/proxies', () => {
  it('lists what is leasable, by selector, in pages that end, with live counts on demand', async () => {
    const names = ['a', 'b', 'c', 'd', 'e'];
    for (const name of names) {
      await fleet.records.create(
        proxyRecord({ ref: { namespace: 'crawlers', name, uid: `uid-${name}` }, labels: { name } }),
      );
    }
    await fleet.records.create(proxyRecord({ cordoned: true }));
    await acquire(discovery, { proxy: { namespace: 'crawlers', name: 'b' } });

    const seen: unknown[] = [];
    let next: string | undefined = '';
    while (next !== undefined) {
      const { body } = await call(discovery, 'GET', `/v1/proxies?limit=2${next}`);
      const page = pageSchema.parse(body);
      seen.push(...page.items);
      next = page.continue === undefined ? undefined : `&continue=${page.continue}`;
    }
    expect(seen).toMatchObject(names.map((name) => ({ proxy: { name }, host: '203.0.113.7' })));

    const filtered = await call(discovery, 'GET', '/v1/proxies?free=true&labelSelector=name%20in%20(b,c)');
    expect(filtered.body['items']).toMatchObject([
      { proxy: { name: 'b' }, live: 1, free: 4 },
      { proxy: { name: 'c' }, live: 0, free: 5 },
    ]);
  });

  it('is never behind a withdrawal that was committed before the call (B1)', async () => {
    const record = proxyRecord();
    let version = await fleet.records.create(record);
    for (let round = 0; round < 10; round += 1) {
      const cordoned = round % 2 === 0;
      version = await fleet.records.write({ ...record, cordoned }, version);
      const list = await call(discovery, 'GET', '/v1/proxies');
      expect(list.body['items']).toHaveLength(cordoned ? 0 : 1);
    }
  });
});

describe('operators', () => {
  it('says that it is alive, and ready while its databases answer', async () => {
    expect((await call(discovery, 'GET', '/health')).status).toBe(200);
    expect((await call(discovery, 'GET', '/ready')).status).toBe(200);
  });
});
