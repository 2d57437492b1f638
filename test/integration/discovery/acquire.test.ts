import { beforeEach, describe, expect, it } from 'vitest';

import type { HttpHandler } from '#shared/app/http.ts';

import {
  acquire,
  call,
  eventually,
  leaseIdOf,
  openFleet,
  proxyRecord,
  publication,
  type Answer,
  type Fleet,
} from './fixture.ts';

let fleet: Fleet;
let discovery: HttpHandler;

beforeEach(() => {
  fleet = openFleet();
  discovery = fleet.instance();
  return () => fleet.close();
});

const count = (answers: readonly Answer[], status: number): number =>
  answers.filter((answer) => answer.status === status).length;

describe('acquire', () => {
  it('answers with everything that a crawler needs, credentials included (B1, K7)', async () => {
    const serving = publication('2001:db8::7');
    const record = proxyRecord({
      serving: { ...serving, endpoint: { ...serving.endpoint, credentialsVersion: '7' } },
    });
    await fleet.records.create(record);
    await fleet.credentials.create(serving.endpoint.id, {
      uid: record.ref.uid,
      username: 'a:b',
      password: 'p@ss/1',
    });

    const { status, body } = await acquire(discovery, { ttlSeconds: 60 });

    expect(status).toBe(201);
    expect(body).toMatchObject({
      proxy: record.ref,
      host: '2001:db8::7',
      ip: '2001:db8::7',
      port: 3128,
      scheme: 'http',
      username: 'a:b',
      password: 'p@ss/1',
      url: 'http://a%3Ab:p%40ss%2F1@[2001:db8::7]:3128',
      state: 'active',
      ttlSeconds: 60,
    });
    expect(Date.parse(String(body['expiresAt'])) - Date.parse(String(body['grantedAt']))).toBe(60_000);
    expect(fleet.lines.join('')).not.toContain('p@ss/1');
  });

  it('gives exactly 5 of 64 concurrent callers one of 5 slots, and a slot again once one is released (row 28)', async () => {
    const record = proxyRecord();
    await fleet.records.create(record);

    const answers = await Promise.all(
      Array.from({ length: 64 }, (_, index) => acquire(discovery, { holder: `crawler-${index}` })),
    );

    expect(count(answers, 201)).toBe(5);
    expect(count(answers, 503)).toBe(59);
    const granted = answers.filter(({ status }) => status === 201);
    expect(new Set(granted.map(({ body }) => body['fencingToken'])).size).toBe(5);
    const refused = answers.find(({ status }) => status === 503);
    expect(refused?.body).toMatchObject({ code: 'NoneAvailable', counts: { full: 1, unhealthy: 0 } });
    expect(Number(refused?.headers['retry-after'])).toBeGreaterThan(0);

    const [first] = granted;
    const released = await call(discovery, 'DELETE', `/v1/leases/${first ? leaseIdOf(first) : ''}`);
    expect(released.status).toBe(204);
    expect((await acquire(discovery)).status).toBe(201);
    expect((await acquire(discovery)).status).toBe(503);
  });

  it('never exceeds the slots with 4 instances and 64 callers (row 28)', async () => {
    await fleet.records.create(proxyRecord());
    const instances = [discovery, fleet.instance(), fleet.instance(), fleet.instance()];
    const answers = await Promise.all(
      Array.from({ length: 64 }, (_, index) => acquire(instances[index % 4] ?? discovery)),
    );
    expect(count(answers, 201)).toBe(5);
    expect(count(answers, 503)).toBe(59);
  });

  it('spreads over the proxies that match', async () => {
    await Promise.all(Array.from({ length: 4 }, () => fleet.records.create(proxyRecord({ maxLeases: 2 }))));
    const answers = await Promise.all(Array.from({ length: 8 }, () => acquire(discovery)));
    const perProxy = Map.groupBy(answers, ({ body }) => JSON.stringify(body['proxy']));
    expect([...perProxy.values()].map((group) => group.length)).toEqual([2, 2, 2, 2]);
  });

  it('frees the slot of a crashed holder right after expiry, without any cleaning (rows 31, 77)', async () => {
    await fleet.records.create(proxyRecord({ maxLeases: 1 }));
    const first = await acquire(discovery, { ttlSeconds: 1 });
    expect((await acquire(discovery)).status).toBe(503);

    const second = await eventually(async () => {
      const answer = await acquire(discovery);
      return answer.status === 201 ? answer : undefined;
    });
    expect(Date.parse(String(second.body['grantedAt']))).toBeGreaterThanOrEqual(
      Date.parse(String(first.body['expiresAt'])),
    );
    expect(Number(second.body['fencingToken'])).toBeGreaterThan(Number(first.body['fencingToken']));
    const late = await call(discovery, 'POST', `/v1/leases/${leaseIdOf(first)}/renew`);
    expect(late).toMatchObject({ status: 410, body: { code: 'LeaseEnded', reason: 'Expired' } });
  });

  it('says NoMatch only when nothing matches, and why what matches cannot be had', async () => {
    expect(await acquire(discovery)).toMatchObject({ status: 404, body: { code: 'NoMatch' } });

    const unhealthy = { state: 'Unhealthy', since: 1, checkedAt: 1, outcome: 'Timeout' } as const;
    const { serving: _none, ...unpublished } = proxyRecord();
    await Promise.all([
      fleet.records.create(proxyRecord({ cordoned: true })),
      fleet.records.create(proxyRecord({ deleting: true })),
      fleet.records.create(proxyRecord({ serving: publication('203.0.113.8', { verdict: unhealthy }) })),
      fleet.records.create(unpublished),
      fleet.records.create(proxyRecord({ labels: { pool: 'other' } })),
    ]);
    expect(await acquire(discovery, { labelSelector: 'pool in (retail)' })).toMatchObject({
      status: 503,
      body: {
        code: 'NoneAvailable',
        counts: { full: 0, unhealthy: 1, draining: 1, cordoned: 1, notReady: 1, excluded: 0 },
      },
    });
    expect((await acquire(discovery, { labelSelector: '!pool' })).body).toMatchObject({ code: 'NoMatch' });
  });

  it('honours selector, namespace, zone, provider, name and exclude', async () => {
    const a = proxyRecord({
      ref: { namespace: 'crawlers', name: 'a', uid: 'uid-a' },
      labels: { region: 'eu' },
    });
    const b = proxyRecord({
      ref: { namespace: 'others', name: 'b', uid: 'uid-b' },
      labels: { region: 'us' },
    });
    const external = publication('proxy.example.com');
    const { zone: _zone, ...withoutZone } = external;
    const c = proxyRecord({
      ref: { namespace: 'crawlers', name: 'c', uid: 'uid-c' },
      provider: 'External',
      labels: {},
      serving: withoutZone,
    });
    await Promise.all([a, b, c].map((record) => fleet.records.create(record)));
    const nameOf = async (body: object): Promise<unknown> => (await acquire(discovery, body)).body['proxy'];

    expect(await nameOf({ labelSelector: 'region notin (us), region' })).toEqual(a.ref);
    expect(await nameOf({ namespace: 'others' })).toEqual(b.ref);
    expect(await nameOf({ provider: 'External' })).toEqual(c.ref);
    expect(await nameOf({ proxy: { namespace: 'crawlers', name: 'a' } })).toEqual(a.ref);
    expect(await nameOf({ namespace: 'crawlers', exclude: ['uid-a'] })).toEqual(c.ref);
    expect((await acquire(discovery, { zone: 'us-east1-b' })).status).toBe(404);
    expect(await acquire(discovery, { namespace: 'others', exclude: ['uid-b'] })).toMatchObject({
      status: 503,
      body: { counts: { excluded: 1 } },
    });
  });

  it('leases only what is in the namespaces of the installation', async () => {
    await fleet.records.create(proxyRecord());
    const elsewhere = fleet.instance({ namespaces: ['others'] });
    expect((await acquire(elsewhere)).status).toBe(404);
    expect((await call(elsewhere, 'GET', '/v1/proxies')).body['items']).toEqual([]);
  });

  it('never leases a proxy with an empty address, whatever else is said of it (B1, row 78)', async () => {
    const record = proxyRecord({ serving: publication('') });
    await fleet.records.create(record);
    expect((await acquire(discovery)).status).toBe(503);
    expect((await call(discovery, 'GET', '/v1/proxies')).body['items']).toEqual([]);
  });
});
