import { beforeEach, describe, expect, it } from 'vitest';

import type { HttpHandler } from '#shared/app/http.ts';

import {
  acquire,
  call,
  leaseIdOf,
  openFleet,
  proxyRecord,
  tokenOf,
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

describe('Idempotency-Key', () => {
  const key = { 'idempotency-key': 'request-1' };

  it('gives the same lease for one slot, on another instance too', async () => {
    await fleet.records.create(proxyRecord({ maxLeases: 1 }));
    const first = await acquire(discovery, {}, key);
    expect(first.status).toBe(201);
    expect(await acquire(discovery, {}, key)).toEqual(first);
    expect(await acquire(fleet.instance(), {}, key)).toEqual(first);
  });

  it('gives one lease to 16 concurrent tries on two instances with many proxies', async () => {
    await Promise.all(Array.from({ length: 6 }, () => fleet.records.create(proxyRecord())));
    const other = fleet.instance();
    const answers = await Promise.all(
      Array.from({ length: 16 }, (_, index) => acquire(index % 2 ? other : discovery, {}, key)),
    );
    expect(count(answers, 201)).toBe(16);
    expect(new Set(answers.map(leaseIdOf)).size).toBe(1);
    const held = await call(discovery, 'GET', '/v1/leases?holder=crawler-1');
    expect(held.body['items']).toHaveLength(1);
  });

  it('refuses another body with 422, and tells callers apart', async () => {
    await fleet.records.create(proxyRecord());
    const first = await acquire(discovery, {}, key);
    expect(await acquire(discovery, { ttlSeconds: 30 }, key)).toMatchObject({
      status: 422,
      body: { code: 'IdempotencyKeyReused' },
    });
    const other = await acquire(discovery, {}, { ...key, ...tokenOf('a@example.com') });
    expect(other.status).toBe(201);
    expect(leaseIdOf(other)).not.toBe(leaseIdOf(first));
  });

  it('answers 410 once the lease has ended, and keeps the time of deletion as a timestamp (row 32)', async () => {
    await fleet.records.create(proxyRecord());
    const first = await acquire(discovery, {}, key);
    await call(discovery, 'DELETE', `/v1/leases/${leaseIdOf(first)}`);
    expect(await acquire(discovery, {}, key)).toMatchObject({ status: 410, body: { reason: 'Released' } });
    const [entry] = (await fleet.db.collection('idempotency').get()).docs;
    const expireAt: unknown = entry?.get('expireAt');
    expect(expireAt).toHaveProperty('seconds');
  });

  it('takes a key again whose 24 hours are over but which was not deleted yet (row 31)', async () => {
    await fleet.records.create(proxyRecord());
    const first = await acquire(discovery, {}, key);
    const [entry] = (await fleet.db.collection('idempotency').get()).docs;
    await entry?.ref.update({ expireAt: new Date(Date.now() - 1_000) });
    const second = await acquire(discovery, {}, key);
    expect(second.status).toBe(201);
    expect(leaseIdOf(second)).not.toBe(leaseIdOf(first));
    expect(leaseIdOf(await acquire(discovery, {}, key))).toBe(leaseIdOf(second));
  });
});
