import { connect, type Socket } from 'node:net';

import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';

import { closeFirestore, openFirestore } from '#shared/firestore/client.ts';
import { guarded, makeGuard } from '#shared/firestore/guard.ts';
import { recordStore } from '#shared/firestore/records.ts';

import { PROXY_HOST } from './parts.ts';
import { startPeer } from './servers.ts';
import { round, startWorld, type World } from './world.ts';

let world: World;
beforeEach(async () => {
  world = await startWorld();
});
afterEach(() => world.close());

/** A client of this world's database that goes through another port. */
const clientVia = (port: number) => {
  process.env['FIRESTORE_EMULATOR_HOST'] = `127.0.0.1:${port}`;
  try {
    return openFirestore({ projectId: world.projectId });
  } finally {
    process.env['FIRESTORE_EMULATOR_HOST'] = inject('emulators').firestore;
  }
};

describe('a channel to Firestore', () => {
  it('row 25: that hangs is given up after some calls in a row, so that another instance takes over', async () => {
    const silent = await world.parts.peer(() => undefined);
    const db = clientVia(silent.port);
    let stuck = 0;
    const records = guarded(
      recordStore(db),
      makeGuard(3, () => {
        stuck += 1;
      }),
    );
    const calls = await Promise.allSettled([1, 2, 3, 4].map((number) => records.read(`uid-${number}`)));
    expect(calls.map(({ status }) => status)).toStrictEqual(['rejected', 'rejected', 'rejected', 'rejected']);
    expect(stuck).toBe(1);
    expect(silent.accepted()).toBeGreaterThan(0);
  });

  it('row 35: that is reset in the middle of a commit costs a retry; the verdict is written once, nothing crashes', async () => {
    const emulator = new URL(`http://${inject('emulators').firestore}`);
    let resets = 0;
    const relay = await startPeer((socket) => {
      const upstream: Socket = connect(Number(emulator.port), emulator.hostname);
      let cutting = false;
      upstream.on('error', () => socket.destroy());
      socket.on('close', () => upstream.destroy());
      upstream.on('close', () => socket.destroy());
      socket.on('data', (bytes: Buffer) => {
        // The commit of a verdict gets through, its answer does not.
        cutting ||= resets === 0 && bytes.includes('checkedAt');
        upstream.write(bytes);
      });
      upstream.on('data', (bytes: Buffer) => {
        if (!cutting) return void socket.write(bytes);
        // Window updates and settings come at once; the answer of a commit is longer.
        if (bytes.length < 60) return undefined;
        cutting = false;
        resets += 1;
        return void socket.resetAndDestroy();
      });
    });
    const db = clientVia(relay.port);
    const record = await world.publish({ place: { host: PROXY_HOST, port: world.parts.open.port } });
    const health = world.start({ records: recordStore(db) });
    expect(await round(health)).toMatchObject({ status: 200, body: { changes: 1, failed: 0 } });
    expect(resets).toBe(1);
    expect((await world.serving(record))?.verdict.state).toBe('Healthy');
    expect(await world.gate(record)).toMatchObject({ open: true });
    expect(health.nudges).toHaveLength(1);
    await relay.close();
    await closeFirestore(db);
  });
});
