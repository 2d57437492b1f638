import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import type { ProxyRecord } from '#shared/domain/record.ts';
import { startForwardProxy } from '#test/compute/forward-proxy.ts';

import { PROXY_HOST, targetAt } from './parts.ts';
import { answering, startPeer } from './servers.ts';
import { round, startWorld, type World } from './world.ts';

let world: World;
beforeEach(async () => {
  world = await startWorld();
});
afterEach(() => world.close());

const good = () => ({ host: PROXY_HOST, port: world.parts.open.port });
/** A port where nothing listens. */
const dead = async () => {
  const peer = await startPeer(() => undefined);
  await peer.close();
  return { host: '127.0.0.1', port: peer.port };
};
const stateOf = async (record: ProxyRecord) => (await world.serving(record))?.verdict.state;

describe('a round', () => {
  it('makes an endpoint that answers healthy: verdict, exit address and gate in one batch, then a nudge', async () => {
    const record = await world.publish({ place: good() });
    const health = world.start();
    expect(await round(health)).toMatchObject({
      status: 200,
      body: { kind: 'done', endpoints: 1, changes: 1 },
    });
    expect((await world.serving(record))?.verdict).toMatchObject({
      state: 'Healthy',
      outcome: 'Ok',
      exitAddress: PROXY_HOST,
    });
    expect(await world.gate(record)).toMatchObject({ open: true });
    const versions = await world.versions();
    expect(versions[`proxies/${record.ref.uid}`]).toBe(versions[`leases/${record.ref.uid}`]);
    expect(health.nudges).toStrictEqual([{ ...record.ref, reason: 'verdict' }]);
  });

  it('condemns what stopped answering within its thresholds, and no neighbour (K7)', async () => {
    const proxy = await startForwardProxy({ host: '127.9.9.2', port: 0 });
    const place = { host: proxy.host, port: proxy.port };
    const dying = await world.publish({ place, state: 'Healthy', exitAddress: '127.9.9.2' });
    const neighbour = await world.publish({ place: good(), state: 'Healthy', exitAddress: PROXY_HOST });
    const before = (await world.versions())[`proxies/${neighbour.ref.uid}`];
    await proxy.stop();
    const health = world.start();
    await round(health);
    expect((await world.serving(dying))?.verdict).toMatchObject({
      state: 'Unhealthy',
      outcome: 'ConnectRefused',
    });
    expect(await world.gate(dying)).toMatchObject({ open: false, closedReason: 'Unhealthy' });
    expect((await world.versions())[`proxies/${neighbour.ref.uid}`]).toBe(before);
    expect(health.nudges.map(({ uid }) => uid)).toStrictEqual([dying.ref.uid]);
  });

  it('that is steady writes no record and no gate, and one document for the shard', async () => {
    await world.publish({ place: good(), state: 'Healthy', exitAddress: PROXY_HOST });
    await world.publish({ place: await dead(), state: 'Unhealthy' });
    const health = world.start();
    await round(health);
    const before = await world.versions();
    expect(await round(health)).toMatchObject({
      body: { outcomes: { Ok: 1, ConnectRefused: 1 }, changes: 0 },
    });
    const after = await world.versions();
    const written = Object.keys(after).filter((path) => after[path] !== before[path]);
    expect(written).toStrictEqual(['rounds/test-0']);
    expect(health.nudges).toStrictEqual([]);
  });

  it('leaves a starting endpoint Unknown, and one past its time Unhealthy (row 51)', async () => {
    const [starting, late] = [
      await world.publish({ place: await dead() }),
      await world.publish({ place: await dead(), old: true }),
    ];
    await round(world.start());
    expect(await stateOf(starting)).toBe('Unknown');
    expect(await stateOf(late)).toBe('Unhealthy');
    expect(await world.gate(starting)).toMatchObject({ open: false, closedReason: 'NotYetHealthy' });
  });

  it("knows another machine on a recycled address by its exit address, where it must be the machine's own", async () => {
    const record = await world.publish({
      place: { host: 'localhost', port: world.parts.tunnel.port },
      ownExit: true,
      old: true,
    });
    const other = await world.publish({
      place: { host: '127.9.9.3', port: world.parts.tunnel.port },
      ownExit: true,
      old: true,
    });
    await round(world.start());
    // A name cannot be compared with an address.
    expect((await world.serving(record))?.verdict).toMatchObject({
      state: 'Healthy',
      exitAddress: '127.0.0.1',
    });
    expect((await world.serving(other))?.verdict).toMatchObject({
      state: 'Unhealthy',
      outcome: 'WrongExitAddress',
      exitAddress: '127.0.0.1',
    });
  });

  it('uses the credentials of the endpoint, and shows them nowhere (row 66)', async () => {
    const place = { host: PROXY_HOST, port: world.parts.guarded.port };
    const [known, unknown] = [
      await world.publish({ place, credentialsVersion: '1', old: true }),
      await world.publish({ place, credentialsVersion: '1', old: true }),
    ];
    const { id = '' } = known.serving?.endpoint ?? {};
    await world.credentials.create(id, { uid: known.ref.uid, ...world.parts.credentials });
    const health = world.start();
    await round(health);
    expect(await stateOf(known)).toBe('Healthy');
    expect((await world.serving(unknown))?.verdict).toMatchObject({
      state: 'Unhealthy',
      outcome: 'ProxyAuthFailed',
    });
    const { username, password } = world.parts.credentials;
    const encoded = Buffer.from(`${username}:${password}`).toString('base64');
    for (const secret of [password, encoded]) expect(health.lines.join('')).not.toContain(secret);
  });

  it('probes the page of healthCheck.url as well', async () => {
    const page = await world.parts.peer(answering('HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n'));
    const url = `http://127.0.0.1:${page.port}/page`;
    const record = await world.publish({ place: good(), old: true, check: { url } });
    await round(world.start());
    expect((await world.serving(record))?.verdict).toMatchObject({
      state: 'Unhealthy',
      outcome: 'TargetRefused',
    });
  });
});

describe('a prober that cannot see its target directly (row 64)', () => {
  it('condemns nothing, says so, and recovers by itself', async () => {
    const gone = targetAt(`https://127.0.0.1:${(await dead()).port}/`);
    const records = [
      await world.publish({ place: good(), state: 'Healthy' }),
      await world.publish({ place: await dead(), state: 'Healthy' }),
    ];
    const blind = world.start({ target: gone });
    expect(await round(blind)).toMatchObject({
      body: { changes: 0, conclusion: { kind: 'inconclusive', why: 'ControlFailed' } },
    });
    expect(await Promise.all(records.map(stateOf))).toStrictEqual(['Healthy', 'Healthy']);
    expect(blind.lines.some((line) => line.includes('ProberBlind'))).toBe(true);
    await world.db.collection('rounds').doc('test-0').delete();
    await round(world.start());
    expect(await Promise.all(records.map(stateOf))).toStrictEqual(['Healthy', 'Unhealthy']);
  });

  it('and does not believe that most of ten or more turn bad at once, for five rounds', async () => {
    const place = await dead();
    const check = { failureThreshold: 1 };
    const records = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        world.publish({
          place: index < 5 ? good() : place,
          state: 'Healthy',
          exitAddress: PROXY_HOST,
          check,
        }),
      ),
    );
    const health = world.start();
    for (let number = 1; number <= 5; number += 1) {
      expect(await round(health)).toMatchObject({ body: { conclusion: { why: 'MassFailure' } } });
    }
    expect(new Set(await Promise.all(records.map(stateOf)))).toStrictEqual(new Set(['Healthy']));
    expect(await round(health)).toMatchObject({ body: { conclusion: { kind: 'conclusive' }, changes: 7 } });
    expect((await Promise.all(records.map(stateOf))).filter((state) => state === 'Unhealthy')).toHaveLength(
      7,
    );
  });
});
