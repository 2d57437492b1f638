/** Channels to Firestore that hang or break, on real sockets. */

import { connect } from 'node:net';

import { beforeEach, describe, expect, inject, it } from 'vitest';

import { identified, requestScope } from '#shared/app/request-id.ts';
import { systemIds } from '#shared/app/ids.ts';
import { makeLog } from '#shared/app/log.ts';
import { closeFirestore } from '#shared/firestore/client.ts';
import { makeGuard } from '#shared/firestore/guard.ts';
import { leasesText } from '#shared/firestore/lease-codec.ts';

import { startPeer } from '../health/servers.ts';
import { acquire, openFleet, proxyRecord, type Fleet } from './fixture.ts';

let fleet: Fleet;

beforeEach(() => {
  fleet = openFleet();
  return () => fleet.close();
});

describe('a channel to Firestore', () => {
  it('row 25: that hangs is answered with 503 in time, and given up when it goes on', async () => {
    await fleet.records.create(proxyRecord());
    const silent = await startPeer(() => undefined);
    let stuck = 0;
    let now = 0;
    const clock = { monotonic: () => (now += 10_000) };
    const guard = makeGuard(
      3,
      () => {
        stuck += 1;
      },
      { ms: 20_000, clock },
    );
    const over = fleet.clientVia(silent.port);
    const lines: string[] = [];
    const tools = { ids: systemIds, log: makeLog((line) => lines.push(line)), scope: requestScope() };
    const discovery = identified(fleet.instance({ over, guard }), { ...tools, projectId: 'p' });

    const renewals = Array.from({ length: 3 }, (_, n) => {
      const path = `/v1/leases/uid-${n}.${'0'.repeat(32)}/renew`;
      const request = {
        method: 'POST',
        path,
        query: new URLSearchParams(),
        headers: {},
        body: new Uint8Array(),
      };
      return discovery(request);
    });
    const answers = await Promise.all([acquire(discovery), ...renewals]);

    for (const answer of answers) {
      expect(answer).toMatchObject({
        status: 503,
        headers: { 'retry-after': '2' },
        body: { code: 'Unavailable' },
      });
    }
    expect(stuck).toBe(1);
    expect(lines.join('')).toContain('took longer than');
    expect(silent.accepted()).toBeGreaterThan(0);
    await silent.close();
  }, 120_000);

  it('row 35: that is reset in the middle of a commit costs a retry: one lease, one slot, no crash', async () => {
    const record = proxyRecord({ maxLeases: 2 });
    await fleet.records.create(record);
    const emulator = new URL(`http://${inject('emulators').firestore}`);
    let resets = 0;
    const relay = await startPeer((socket) => {
      const upstream = connect(Number(emulator.port), emulator.hostname);
      let isCutting = false;
      upstream.on('error', () => socket.destroy());
      socket.on('close', () => upstream.destroy());
      upstream.on('close', () => socket.destroy());
      socket.on('data', (bytes: Buffer) => {
        // The commit of a lease gets through, its answer does not.
        isCutting ||= resets === 0 && bytes.includes('fence') && bytes.includes('crawler-reset');
        upstream.write(bytes);
      });
      upstream.on('data', (bytes: Buffer) => {
        if (!isCutting) return void socket.write(bytes);
        // Window updates and settings come at once; the answer of a commit is longer.
        if (bytes.length < 60) return undefined;
        isCutting = false;
        resets += 1;
        return void socket.resetAndDestroy();
      });
    });
    const over = fleet.clientVia(relay.port);

    const answer = await acquire(fleet.instance({ over }), { holder: 'crawler-reset' });

    expect(resets).toBe(1);
    expect(answer.status).toBe(201);
    const stored = await fleet.db.collection('leases').doc(record.ref.uid).get();
    const ids = Object.values(leasesText.parse(stored.get('leases')).leases).map(({ id }) => id);
    expect(ids).toEqual([answer.body['leaseId']]);
    await closeFirestore(over);
    await relay.close();
  }, 120_000);
});
