import { beforeEach, describe, expect, it } from 'vitest';

import type { HttpHandler } from '#shared/app/http.ts';
import { leasesText } from '#shared/firestore/lease-codec.ts';

import {
  acquire,
  call,
  leaseIdOf,
  openFleet,
  proxyRecord,
  publication,
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

describe('renew, report, release, get', () => {
  it('renews from now, and tells how the proxy stands', async () => {
    const record = proxyRecord();
    const version = await fleet.records.create(record);
    const lease = await acquire(discovery, { ttlSeconds: 30 });
    const path = `/v1/leases/${leaseIdOf(lease)}`;

    const renewed = await call(discovery, 'POST', `${path}/renew`, { body: { ttlSeconds: 600 } });
    expect(renewed).toMatchObject({ status: 200, body: { state: 'active', ttlSeconds: 600 } });
    expect(Date.parse(String(renewed.body['expiresAt']))).toBeGreaterThan(
      Date.parse(String(lease.body['expiresAt'])) + 500_000,
    );
    await fleet.records.write({ ...record, cordoned: true }, version);
    expect((await call(discovery, 'POST', `${path}/renew`)).body).toMatchObject({ state: 'cordoned' });
    expect((await call(discovery, 'GET', path)).body).toMatchObject({ state: 'cordoned', ttlSeconds: 600 });
  });

  it('caps a lease on a draining endpoint, and says EndpointGone after it went (row 76)', async () => {
    const record = proxyRecord();
    const version = await fleet.records.create(record);
    const lease = await acquire(discovery);
    const renew = () => call(discovery, 'POST', `/v1/leases/${leaseIdOf(lease)}/renew`);
    const old = record.serving;
    if (!old) throw new Error('the record serves');

    const until = Date.now() + 60_000;
    const replaced = { ...record, serving: publication('203.0.113.99'), draining: [{ ...old, until }] };
    const next = await fleet.records.write(replaced, version);
    expect(await renew()).toMatchObject({
      status: 200,
      body: { state: 'draining', expiresAt: new Date(until).toISOString() },
    });
    await fleet.records.write({ ...replaced, draining: [] }, next);
    expect(await renew()).toMatchObject({ status: 410, body: { code: 'EndpointGone' } });
    expect((await call(discovery, 'GET', `/v1/leases/${leaseIdOf(lease)}`)).status).toBe(404);
    const fresh = await Promise.all(Array.from({ length: 6 }, () => acquire(discovery)));
    expect(count(fresh, 201)).toBe(5);
    expect(
      fresh.filter(({ status }) => status === 201).every(({ body }) => body['host'] === '203.0.113.99'),
    ).toBe(true);
  });

  it('gives the true reason of an end, and releases as often as asked (row 75)', async () => {
    await fleet.records.create(proxyRecord({ maxLeases: 1 }));
    const lease = await acquire(discovery);
    const path = `/v1/leases/${leaseIdOf(lease)}`;
    expect((await call(discovery, 'DELETE', path)).status).toBe(204);
    const successor = await acquire(discovery);
    expect((await call(discovery, 'DELETE', path)).status).toBe(204);
    expect((await call(discovery, 'GET', `/v1/leases/${leaseIdOf(successor)}`)).status).toBe(200);
    expect(await call(discovery, 'POST', `${path}/renew`)).toMatchObject({
      status: 410,
      body: { code: 'LeaseEnded', reason: 'Released' },
    });
    const unknown = `uid-x.${'0'.repeat(32)}`;
    expect((await call(discovery, 'POST', `/v1/leases/${unknown}/renew`)).body).toMatchObject({
      code: 'Unknown',
    });
    expect((await call(discovery, 'GET', `/v1/leases/${unknown}`)).status).toBe(404);
    expect((await call(discovery, 'DELETE', `/v1/leases/${unknown}`)).status).toBe(204);
  });

  it('renews and releases on one instance what another one granted (row 27)', async () => {
    await fleet.records.create(proxyRecord({ maxLeases: 2 }));
    const other = fleet.instance();
    await acquire(other);
    const lease = await acquire(discovery);
    const path = `/v1/leases/${leaseIdOf(lease)}`;
    expect((await call(other, 'POST', `${path}/renew`)).status).toBe(200);
    expect((await call(other, 'DELETE', path)).status).toBe(204);
    expect((await acquire(discovery)).status).toBe(201);
  });

  it('records reports and asks for a probe after failures only (row 73)', async () => {
    const record = proxyRecord();
    await fleet.records.create(record);
    const lease = await acquire(discovery);
    const report = (outcome: string) =>
      call(discovery, 'POST', `/v1/leases/${leaseIdOf(lease)}/report`, {
        body: { outcome, target: 'a.example' },
      });

    expect((await report('ok')).status).toBe(202);
    expect(fleet.probes).toEqual([]);
    expect((await report('failed')).status).toBe(202);
    expect(fleet.probes).toEqual([{ uid: record.ref.uid, reason: 'report' }]);
    const stored = await fleet.db.collection('leases').doc(record.ref.uid).get();
    expect(JSON.stringify(stored.get('leases'))).toContain('a.example');
    expect((await acquire(discovery)).status).toBe(201);
  });

  it('records the identity of the caller with the lease, and tells it to nobody', async () => {
    const record = proxyRecord();
    await fleet.records.create(record);
    const lease = await acquire(discovery, {}, tokenOf('crawler@project.iam.gserviceaccount.com'));
    await acquire(discovery);
    const stored = await fleet.db.collection('leases').doc(record.ref.uid).get();
    const callers = Object.values(leasesText.parse(stored.get('leases')).leases).map(({ caller }) => caller);
    expect(callers.toSorted()).toEqual(['', 'crawler@project.iam.gserviceaccount.com']);
    expect(JSON.stringify(lease)).not.toContain('gserviceaccount');
  });

  it("finds a holder's own leases again, and nobody else's", async () => {
    await fleet.records.create(proxyRecord());
    const [mine, theirs] = [tokenOf('a@example.com'), tokenOf('b@example.com')];
    const lease = await acquire(discovery, { holder: 'crawler 7' }, mine);
    await acquire(discovery, { holder: 'crawler 7' }, theirs);

    const found = await call(discovery, 'GET', '/v1/leases?holder=crawler%207', { headers: mine });
    expect(found).toMatchObject({ status: 200, body: { items: [{ leaseId: leaseIdOf(lease) }] } });
    expect(found.body['items']).toHaveLength(1);
    const path = `/v1/leases/${leaseIdOf(lease)}`;
    expect((await call(discovery, 'GET', path, { headers: theirs })).status).toBe(404);
    expect((await call(discovery, 'DELETE', path, { headers: theirs })).status).toBe(204);
    expect((await call(discovery, 'GET', path, { headers: mine })).status).toBe(200);
  });
});
