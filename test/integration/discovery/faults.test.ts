import { beforeEach, describe, expect, it } from 'vitest';

import { systemClock, type Clock } from '#shared/app/clock.ts';
import { SystemError } from '#shared/app/errors.ts';
import { leasesText } from '#shared/firestore/lease-codec.ts';
import type { LeaseStore } from '#shared/firestore/leases.ts';

import { acquire, call, openFleet, proxyRecord, type Fleet } from './fixture.ts';

let fleet: Fleet;

beforeEach(() => {
  fleet = openFleet();
  return () => fleet.close();
});

/** Every commit is stored; the replies to the first `times` of them get lost. */
const losingReplies =
  (times: number, error: () => SystemError) =>
  (store: LeaseStore): LeaseStore => {
    let left = times;
    return {
      ...store,
      commit: async (...args) => {
        const version = await store.commit(...args);
        left -= 1;
        if (left >= 0) throw error();
        return version;
      },
    };
  };

const liveLeases = async (uid: string): Promise<number> => {
  const snapshot = await fleet.db.collection('leases').doc(uid).get();
  return Object.keys(leasesText.parse(snapshot.get('leases')).leases).length;
};

describe('a commit whose reply is lost', () => {
  it.each([
    ['a deadline', () => new SystemError('Transient', 'deadline exceeded')],
    [
      'a conflict with itself, after a silent retry',
      () => new SystemError('Conflict', 'failed precondition'),
    ],
  ])('takes one slot and answers 201: %s (row 36)', async (_what, error) => {
    const record = proxyRecord({ maxLeases: 1 });
    await fleet.records.create(record);
    const discovery = fleet.instance({ wrap: losingReplies(1, error) });

    const answer = await acquire(discovery, {}, { 'idempotency-key': 'k' });

    expect(answer.status).toBe(201);
    expect(await liveLeases(record.ref.uid)).toBe(1);
    expect(await acquire(fleet.instance(), {}, { 'idempotency-key': 'k' })).toEqual(answer);
  });

  it('of 32 callers, with one reply of three lost, gives exactly as many leases as slots', async () => {
    const record = proxyRecord({ maxLeases: 10 });
    await fleet.records.create(record);
    let commits = 0;
    const discovery = fleet.instance({
      wrap: (store) => ({
        ...store,
        commit: async (...args) => {
          const version = await store.commit(...args);
          commits += 1;
          if (commits % 3 === 1) throw new SystemError('Transient', 'no reply');
          return version;
        },
      }),
    });
    const answers = await Promise.all(Array.from({ length: 32 }, () => acquire(discovery)));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(10);
    expect(await liveLeases(record.ref.uid)).toBe(10);
  });
});

const away = (): Promise<never> => Promise.reject(new SystemError('Transient', 'away'));

describe('an outage', () => {
  it('is an error that says so, never "not found" or "none free"', async () => {
    await fleet.records.create(proxyRecord());
    const discovery = fleet.instance({ wrap: (store) => ({ ...store, all: away, read: away }) });
    await expect(acquire(discovery)).rejects.toMatchObject({ code: 'Transient' });
    await expect(call(discovery, 'GET', '/v1/proxies')).rejects.toMatchObject({ code: 'Transient' });
    await expect(call(discovery, 'GET', '/ready')).rejects.toMatchObject({ code: 'Transient' });
    expect((await call(discovery, 'GET', '/health')).status).toBe(200);
  });

  it('of the credentials takes no slot from anybody', async () => {
    const record = proxyRecord({ maxLeases: 1 });
    const { serving } = record;
    if (!serving) throw new Error('the record serves');
    const endpoint = { ...serving.endpoint, credentialsVersion: '1' };
    await fleet.records.create({ ...record, serving: { ...serving, endpoint } });
    // Unreadable: there is a document, but not of the shape that it must have.
    await fleet.secretsDb.collection('credentials').doc(endpoint.id).set({ username: 7 });
    const discovery = fleet.instance();
    await expect(acquire(discovery)).rejects.toMatchObject({ code: 'InvalidSpec' });
    expect(await liveLeases(record.ref.uid)).toBe(0);

    await fleet.secretsDb.collection('credentials').doc(endpoint.id).set({ username: 'u', password: 'p' });
    expect((await acquire(discovery)).body).toMatchObject({ username: 'u', password: 'p' });
  });
});

const off = (by: number): Clock => ({
  now: () => Date.now() + by,
  monotonic: () => systemClock.monotonic() + by,
});

describe('clocks', () => {
  it('that are off by two minutes expire nothing early and reuse nothing late (row 37)', async () => {
    await fleet.records.create(proxyRecord({ maxLeases: 1 }));
    const [slow, fast] = [fleet.instance({ clock: off(-120_000) }), fleet.instance({ clock: off(120_000) })];
    const lease = await acquire(slow, { ttlSeconds: 30 });
    expect(lease.status).toBe(201);
    expect((await acquire(fast)).status).toBe(503);
    const path = `/v1/leases/${String(lease.body['leaseId'])}`;
    expect((await call(fast, 'POST', `${path}/renew`)).status).toBe(200);
    const age = Math.abs(Date.parse(String(lease.body['grantedAt'])) - Date.now());
    expect(age).toBeLessThan(60_000);
  });
});
