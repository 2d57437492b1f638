/** Many who want the same at once, and whoever else writes to the same documents. */

import type { Firestore } from '@google-cloud/firestore';
import { beforeEach, describe, expect, it } from 'vitest';

import type { HttpHandler } from '#shared/app/http.ts';
import { NO_LEASES, leasesText, toText } from '#shared/firestore/lease-codec.ts';

import {
  acquire,
  call,
  eventually,
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

const withStatus = (answers: readonly Answer[], status: number): readonly Answer[] =>
  answers.filter((answer) => answer.status === status);

const liveLeases = async (uid: string): Promise<readonly string[]> => {
  const stored = await fleet.db.collection('leases').doc(uid).get();
  return Object.values(leasesText.parse(stored.get('leases')).leases).map(({ id }) => id);
};

/** Every document of a database, with the time of its last write. */
const versions = async (db: Firestore): Promise<ReadonlyMap<string, string>> => {
  const found = new Map<string, string>();
  for (const collection of await db.listCollections()) {
    for (const { ref, updateTime } of (await collection.get()).docs) {
      found.set(ref.path, updateTime.valueOf());
    }
  }
  return found;
};

/** 200 acquires at once, each with a key of its own, the same ones each time. */
const burst = (at: HttpHandler): Promise<readonly Answer[]> =>
  Promise.all(
    Array.from({ length: 200 }, (_, n) =>
      acquire(at, { holder: `crawler-${n}` }, { 'idempotency-key': `key-${n}` }),
    ),
  );

describe('a burst', () => {
  it('row 27: of 200 acquires at one instance gets leases or 503 with Retry-After, and its retries the same leases', async () => {
    const records = Array.from({ length: 5 }, () => proxyRecord({ maxLeases: 4 }));
    await Promise.all(records.map((record) => fleet.records.create(record)));

    const first = await burst(discovery);
    expect(withStatus(first, 201)).toHaveLength(20);
    const refused = withStatus(first, 503);
    expect(refused).toHaveLength(180);
    for (const { headers, body } of refused) {
      expect(Number(headers['retry-after'])).toBeGreaterThan(0);
      expect(body['code']).toBe('NoneAvailable');
    }

    const again = await burst(fleet.instance());
    expect(again.map(leaseIdOf)).toEqual(first.map(leaseIdOf));
    const held = await Promise.all(records.map(({ ref }) => liveLeases(ref.uid)));
    expect(held.flat()).toHaveLength(20);
  });

  it('row 28: of 50 acquires for 5 slots at two instances gives 5 leases, and the rest a clean refusal', async () => {
    await fleet.records.create(proxyRecord());
    const other = fleet.instance();
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, n) => acquire(n % 2 ? discovery : other)),
    );
    expect(withStatus(answers, 201)).toHaveLength(5);
    expect(withStatus(answers, 503)).toHaveLength(45);
  });

  it('row 30: writes to the documents of the proxies that it leases and to no other, so that none is everybody’s', async () => {
    const records = Array.from({ length: 8 }, () => proxyRecord({ maxLeases: 1 }));
    await Promise.all(records.map((record) => fleet.records.create(record)));
    const before = await versions(fleet.db);
    const leases = await Promise.all(Array.from({ length: 4 }, () => acquire(discovery)));
    for (const lease of leases) {
      await call(discovery, 'POST', `/v1/leases/${leaseIdOf(lease)}/renew`);
      await call(discovery, 'DELETE', `/v1/leases/${leaseIdOf(lease)}`);
    }
    const after = await versions(fleet.db);
    const written = [...after]
      .filter(([path, version]) => before.get(path) !== version)
      .map(([path]) => path);
    const leased = leases.map((lease) => `leases/${leaseIdOf(lease).split('.')[0] ?? ''}`);
    expect(written.toSorted()).toEqual([...new Set(leased)].toSorted());
    expect(written).toHaveLength(4);
  });

  it('row 34: with one entry that cannot be written keeps no other of the same commit from its lease', async () => {
    await fleet.records.create(proxyRecord({ maxLeases: 100 }));
    const key = { 'idempotency-key': 'taken' };
    const taken = await acquire(fleet.instance(), { holder: 'crawler-taken' }, key);
    await acquire(discovery);
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, n) =>
        acquire(
          discovery,
          { holder: n === 30 ? 'crawler-taken' : `crawler-${n}` },
          n === 30 ? key : { 'idempotency-key': `key-${n}` },
        ),
      ),
    );
    expect(withStatus(answers, 201)).toHaveLength(60);
    expect(answers[30]).toEqual(taken);
    expect(new Set(answers.map(leaseIdOf)).size).toBe(60);
  });
});

describe('others that write the same documents', () => {
  it('row 29: two creates of one key at once, from two instances, are one lease', async () => {
    const records = Array.from({ length: 2 }, () => proxyRecord({ maxLeases: 1 }));
    await Promise.all(records.map((record) => fleet.records.create(record)));
    const key = { 'idempotency-key': 'both' };
    const answers = await Promise.all([acquire(discovery, {}, key), acquire(fleet.instance(), {}, key)]);
    expect(answers.map(({ status }) => status)).toEqual([201, 201]);
    expect(new Set(answers.map(leaseIdOf)).size).toBe(1);
    const held = await Promise.all(records.map(({ ref }) => liveLeases(ref.uid)));
    expect(held.flat()).toHaveLength(1);
  });

  it('row 29: a lock that a transaction holds on the document delays an acquire and fails it not', async () => {
    const record = proxyRecord({ maxLeases: 1 });
    await fleet.records.create(record);
    const [isHeld, isAsked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const locked = fleet.instance({
      wrap: (store) => ({
        ...store,
        commit: (...args) => {
          isAsked.resolve();
          return store.commit(...args);
        },
      }),
    });
    const holding = fleet.db.runTransaction(async (transaction) => {
      await transaction.get(fleet.db.collection('leases').doc(record.ref.uid));
      isHeld.resolve();
      await isAsked.promise;
    });
    await isHeld.promise;
    const [answer] = await Promise.all([acquire(locked), holding]);
    expect(answer.status).toBe(201);
    expect(await liveLeases(record.ref.uid)).toEqual([answer.body['leaseId']]);
  }, 120_000);

  it('row 32: leases are counted, not a counter: one that goes behind everybody’s back frees its slot', async () => {
    const record = proxyRecord({ maxLeases: 1 });
    await fleet.records.create(record);
    await acquire(discovery);
    expect((await acquire(discovery)).status).toBe(503);
    await fleet.db
      .collection('leases')
      .doc(record.ref.uid)
      .update({ leases: toText(NO_LEASES), freeAt: 0 });
    const list = await call(discovery, 'GET', '/v1/proxies?free=true');
    expect(list.body['items']).toMatchObject([{ live: 0, free: 1 }]);
    expect((await acquire(discovery)).status).toBe(201);
  });
});

describe('a lease that ends', () => {
  it('row 74: whether its holder renews it or another gets its slot, it is never both', async () => {
    await fleet.records.create(proxyRecord({ maxLeases: 1 }));
    const other = fleet.instance();
    const first = await acquire(discovery, { ttlSeconds: 1 });
    const renew = () =>
      call(discovery, 'POST', `/v1/leases/${leaseIdOf(first)}/renew`, { body: { ttlSeconds: 1 } });
    let renewals = 3;
    const [late, next] = await eventually(async () => {
      const expiry = Date.parse(String(first.body['expiresAt']));
      const mayRenew = renewals > 0 || Date.now() > expiry + 3_000;
      renewals -= 1;
      const [renewed, acquired] = await Promise.all([mayRenew ? renew() : undefined, acquire(other)]);
      if (acquired.status !== 201) return undefined;
      return [renewed ?? (await renew()), acquired];
    }, 30_000);
    expect(late).toMatchObject({ status: 410, body: { code: 'LeaseEnded', reason: 'Expired' } });
    expect(Number(next.body['fencingToken'])).toBeGreaterThan(Number(first.body['fencingToken']));
  }, 60_000);

  it('row 75: neither its old id nor another’s token touches its successor, on any instance', async () => {
    await fleet.records.create(proxyRecord({ maxLeases: 1 }));
    const other = fleet.instance();
    const old = await acquire(discovery);
    const path = `/v1/leases/${leaseIdOf(old)}`;
    expect((await call(discovery, 'DELETE', path)).status).toBe(204);
    const successor = await acquire(other);
    for (const at of [discovery, other]) {
      expect((await call(at, 'DELETE', path)).status).toBe(204);
      expect(await call(at, 'POST', `${path}/renew`)).toMatchObject({
        status: 410,
        body: { reason: 'Released' },
      });
      expect((await call(at, 'POST', `${path}/report`, { body: { outcome: 'failed' } })).status).toBe(410);
      const theirs = `/v1/leases/${leaseIdOf(successor)}`;
      expect((await call(at, 'DELETE', theirs, { headers: tokenOf('b@example.com') })).status).toBe(204);
    }
    expect(fleet.probes).toEqual([]);
    expect((await call(discovery, 'GET', `/v1/leases/${leaseIdOf(successor)}`)).status).toBe(200);
    expect((await acquire(discovery)).status).toBe(503);
  });
});
