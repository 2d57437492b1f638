/** Lists and choices from views, as health writes them. */

import { beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';

import type { HttpHandler } from '#shared/app/http.ts';
import { gateOf } from '#shared/domain/gate.ts';
import type { ProxyRecord } from '#shared/domain/record.ts';
import { MAX_SHARDS, bucketOf, bucketRange } from '#shared/domain/shard.ts';
import { viewWriter } from '#shared/firestore/views.ts';
import { packViews, unpackView } from '#shared/firestore/view-codec.ts';

import { acquire, call, openFleet, proxyRecord, type Fleet } from './fixture.ts';

let fleet: Fleet;
let discovery: HttpHandler;

beforeEach(() => {
  fleet = openFleet();
  discovery = fleet.instance();
  return () => fleet.close();
});

const scope = { installation: 'test', shard: 'test-0', shards: 1 };
const page = z.object({ items: z.array(z.object({ proxy: z.object({ name: z.string() }) })) });

const names = async (handler: HttpHandler, query = ''): Promise<readonly string[]> => {
  const { body } = await call(handler, 'GET', `/v1/proxies${query}`);
  return page.parse(body).items.map(({ proxy }) => proxy.name);
};

const named = (name: string, over: Partial<ProxyRecord> = {}): ProxyRecord =>
  proxyRecord({ ref: { namespace: 'crawlers', name, uid: `uid-${name}` }, ...over });

const show = async (writer = viewWriter(fleet.db)): Promise<number> =>
  writer.write(scope, await fleet.records.probed('test'));

describe('views', () => {
  it('are written when the fleet has changed and not otherwise (goal 9)', async () => {
    const record = named('a');
    const version = await fleet.records.create(record);
    const writer = viewWriter(fleet.db);
    expect(await show(writer)).toBe(1);
    expect(await show(writer)).toBe(0);
    expect(await show(viewWriter(fleet.db))).toBe(0);
    await fleet.records.write({ ...record, cordoned: true }, version);
    expect(await show(writer)).toBe(1);
    expect(await show(writer)).toBe(0);
  });

  it('replace those of another number of shards', async () => {
    await fleet.records.create(named('a'));
    const selection = await fleet.records.probed('test');
    await viewWriter(fleet.db).write({ installation: 'test', shard: 'test-0', shards: 2 }, selection);
    expect(await names(discovery)).toEqual(['a']);
    await show();
    const stored = await fleet.db.collection('views').get();
    expect(stored.docs.map(({ id }) => id)).toEqual(['test-0-of-1-0']);
    expect(await names(fleet.instance())).toEqual(['a']);
  });

  it('hold 10,000 proxies in at most 10 documents of far less than 1 MiB (goal 8)', () => {
    const gates = Array.from({ length: 10_000 }, (_, index) => gateOf(named(`proxy-${index}`)));
    const views = packViews(gates);
    expect(views.length).toBeLessThanOrEqual(10);
    for (const { data } of views) expect(data.length).toBeLessThan(400_000);
    const unpacked = views.flatMap(({ data }) => unpackView(data) ?? []);
    expect(new Map(unpacked.map((gate) => [gate.proxy.ref.uid, gate]))).toEqual(
      new Map(gates.map((gate) => [gate.proxy.ref.uid, gate])),
    );
    expect(packViews(gates.slice(0, 1_000))).toHaveLength(1);
  });

  it.each([3, 5, 6, MAX_SHARDS])(
    'of %i shards with 10,000 proxies are at most 10 documents (goal 8)',
    (count) => {
      const uids = Array.from({ length: 10_000 }, (_, index) => `uid-${index}`);
      const documents = Array.from({ length: count }, (_, index) => {
        const { from, to } = bucketRange(index, count);
        const mine = uids.filter((uid) => from <= bucketOf(uid) && bucketOf(uid) < to);
        return packViews(mine.map((uid) => gateOf(named(uid)))).length;
      });
      expect(documents.reduce((sum, of) => sum + of, 0)).toBeLessThanOrEqual(10);
    },
  );
});

describe('a list from views', () => {
  it('is never behind a withdrawal, an addition or an edit that was committed before the call (B1)', async () => {
    const [a, b] = [named('a'), named('b')];
    const version = await fleet.records.create(a);
    await fleet.records.create(b);
    await show();
    expect(await names(discovery)).toEqual(['a', 'b']);

    const next = await fleet.records.write({ ...a, cordoned: true }, version);
    await fleet.records.create(named('c'));
    expect(await names(discovery)).toEqual(['b', 'c']);
    expect(await names(fleet.instance())).toEqual(['b', 'c']);
    const { serving: _serving, ...gone } = a;
    await fleet.records.write({ ...gone, gone: true }, next);
    expect(await names(discovery)).toEqual(['b', 'c']);
  });

  it('works from the lease documents while views are too old, not whole or not readable', async () => {
    await fleet.records.create(named('a'));
    await show();
    const [view] = (await fleet.db.collection('views').get()).docs;
    if (!view) throw new Error('there is a view');
    await view.ref.update({ data: Buffer.from('nonsense') });
    expect(await names(fleet.instance())).toEqual(['a']);
    await view.ref.update({ of: 2 });
    expect(await names(fleet.instance())).toEqual(['a']);
  });

  it('is cut into pages that neither repeat nor lose what stays, whatever comes and goes', async () => {
    const version = await fleet.records.create(named('b'));
    for (const name of ['c', 'd', 'e']) await fleet.records.create(named(name));
    await show();
    const first = await call(discovery, 'GET', '/v1/proxies?limit=2');
    expect(page.parse(first.body).items.map(({ proxy }) => proxy.name)).toEqual(['b', 'c']);
    await fleet.records.create(named('a'));
    await fleet.records.write({ ...named('b'), cordoned: true }, version);
    expect(await names(discovery, `?limit=2&continue=${String(first.body['continue'])}`)).toEqual(['d', 'e']);
  });
});

describe('a choice from views', () => {
  it('grants from a picture that is behind only what the gate allows (B1)', async () => {
    const record = named('a', { maxLeases: 1 });
    const version = await fleet.records.create(record);
    await show();
    expect((await acquire(discovery)).status).toBe(201);
    const next = await fleet.records.write({ ...record, maxLeases: 3 }, version);
    expect((await acquire(discovery)).status).toBe(201);
    await fleet.records.write({ ...record, cordoned: true, maxLeases: 3 }, next);
    expect((await acquire(discovery)).status).toBe(503);
  });

  it('says NoMatch only when no Proxy matches, published or not', async () => {
    await fleet.records.create(named('a'));
    await show();
    const { serving: _serving, ...unpublished } = named('b', { labels: { pool: 'new' } });
    await fleet.records.create(unpublished);
    expect((await acquire(discovery, { labelSelector: 'pool=new' })).status).toBe(503);
    expect((await acquire(discovery, { labelSelector: 'pool=none' })).status).toBe(404);
  });
});
