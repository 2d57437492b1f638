import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import type { ProxyRecord } from '#shared/domain/record.ts';

import type { Target } from '../../../functions/health/probe/target.ts';
import { PROXY_HOST, targetAt } from './parts.ts';
import { echoAnswer, startPeer, startTarget, type Answer, type TestServer } from './servers.ts';
import { deliver, round, startWorld, type World } from './world.ts';

let world: World;
const servers: TestServer[] = [];
beforeEach(async () => {
  world = await startWorld();
});
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
  await world.close();
});

const good = () => ({ host: PROXY_HOST, port: world.parts.open.port });
const dead = async () => {
  const peer = await startPeer(() => undefined);
  await peer.close();
  return { host: '127.0.0.1', port: peer.port };
};
const stateOf = async (record: ProxyRecord) => (await world.serving(record))?.verdict.state;
const target = async (answer: Answer, kind: Target['kind'] = 'echo'): Promise<Target> => {
  const server = await startTarget(answer, await world.parts.authority.issue('127.0.0.1'));
  servers.push(server);
  return targetAt(`https://127.0.0.1:${server.port}/`, kind);
};
const busy: Answer = (_, response) => response.writeHead(503).end();
const silent: Answer = () => undefined;
/** Answers us, but no proxy: as one does that throttles strangers. */
const throttling: Answer = (request, response) =>
  request.socket.remoteAddress === '127.0.0.1' ? echoAnswer(request, response) : busy(request, response);
const page: Answer = (_, response) => response.end('hello');
const check = { failureThreshold: 1, timeoutSeconds: 2 };
const living = () => world.publish({ place: good(), state: 'Healthy', exitAddress: PROXY_HOST, check });

describe('row 64: a target that refuses everybody', () => {
  it.each<[string, Answer, string]>([
    ['answers 503 to all', busy, 'TargetLost'],
    ['hangs for all', silent, 'TargetLost'],
    ['throttles proxies, and not us', throttling, ''],
  ])(
    'one that %s: a second target decides, and what is dead is still found out',
    async (_, answer, alert) => {
      const records = [await living(), await living()];
      const deadOne = await world.publish({ place: await dead(), state: 'Healthy', check });
      const health = world.start({ targets: [await target(answer), await target(page, 'page')] });
      expect(await round(health)).toMatchObject({ body: { conclusion: { kind: 'conclusive' }, changes: 1 } });
      expect(await Promise.all([...records, deadOne].map(stateOf))).toStrictEqual([
        'Healthy',
        'Healthy',
        'Unhealthy',
      ]);
      expect(health.lines.join('').includes('TargetLost')).toBe(alert === 'TargetLost');
    },
  );

  it('both: nothing is judged, nothing is written but the claim, an alert is raised, and all recovers', async () => {
    const records = [await living(), await world.publish({ place: await dead(), state: 'Healthy', check })];
    const before = await world.versions();
    const blind = world.start({ targets: [await target(busy), await target(silent, 'page')] });
    expect(await round(blind)).toMatchObject({
      body: { conclusion: { why: 'ControlFailed' }, changes: 0, left: 2 },
    });
    const after = await world.versions();
    expect(Object.keys(after).filter((path) => after[path] !== before[path])).toStrictEqual([
      'rounds/test-0',
    ]);
    expect(blind.lines.join('')).toContain('"alert":"ProberBlind"');
    await world.db.collection('rounds').doc('test-0').update({ until: 0 });
    await round(world.start());
    expect(await Promise.all(records.map(stateOf))).toStrictEqual(['Healthy', 'Unhealthy']);
  });

  it('goes while a round is under way: what it took down with it is not believed', async () => {
    const record = await living();
    let asked = 0;
    const failing = await target((request, response) => {
      asked += 1;
      if (asked === 1) echoAnswer(request, response);
      else busy(request, response);
    });
    const health = world.start({ targets: [failing] });
    expect(await round(health)).toMatchObject({ body: { conclusion: { why: 'ControlFailed' } } });
    expect(await stateOf(record)).toBe('Healthy');
  });

  it('a page that the proxy answers itself does not pass for the second target (row 65)', async () => {
    const liar = await world.parts.peer((socket) => {
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi'));
    });
    const record = await world.publish({
      place: { host: '127.0.0.1', port: liar.port },
      state: 'Healthy',
      check,
    });
    await round(world.start({ targets: [await target(throttling), await target(page, 'page')] }));
    expect((await world.serving(record))?.verdict).toMatchObject({
      state: 'Unhealthy',
      outcome: 'WrongContent',
    });
  });
});

describe("an address that must be the machine's own (idea 12)", () => {
  it('a healthy endpoint whose address has gone to another machine is condemned, and its exit address recorded', async () => {
    const record = await world.publish({
      place: { host: '127.9.9.4', port: world.parts.tunnel.port },
      state: 'Healthy',
      exitAddress: '127.9.9.4',
      ownExit: true,
      check,
    });
    await round(world.start());
    expect((await world.serving(record))?.verdict).toMatchObject({
      state: 'Unhealthy',
      outcome: 'WrongExitAddress',
      exitAddress: '127.0.0.1',
    });
    expect(await world.gate(record)).toMatchObject({ open: false, closedReason: 'Unhealthy' });
  });

  it('a new endpoint on it is never opened, also when it is probed at once', async () => {
    const record = await world.publish({
      place: { host: '127.9.9.5', port: world.parts.tunnel.port },
      ownExit: true,
      old: true,
      check,
    });
    await deliver(world.start(), { uid: record.ref.uid, reason: 'published' });
    expect(await stateOf(record)).toBe('Unhealthy');
    expect(await world.gate(record)).toMatchObject({ open: false });
  });

  it('a target that tells no address opens nothing and condemns nothing', async () => {
    const own = { ownExit: true, old: true, check };
    const starting = await world.publish({ place: good(), ...own });
    const healthy = await world.publish({
      place: good(),
      state: 'Healthy',
      exitAddress: PROXY_HOST,
      ...own,
    });
    const health = world.start({ targets: [await target(busy), await target(page, 'page')] });
    await round(health);
    expect(await Promise.all([starting, healthy].map(stateOf))).toStrictEqual(['Unknown', 'Healthy']);
  });
});
