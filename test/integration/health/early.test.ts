import { randomUUID } from 'node:crypto';

import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { hasCode } from '#shared/app/errors.ts';
import type { ProxyRecord } from '#shared/domain/record.ts';
import { startForwardProxy, type ForwardProxy } from '#test/compute/forward-proxy.ts';

import { PROXY_HOST, targetAt } from './parts.ts';
import { startPeer } from './servers.ts';
import { deliver, deliverRaw, startWorld, type World } from './world.ts';

let world: World;
const proxies: ForwardProxy[] = [];
beforeEach(async () => {
  world = await startWorld();
});
afterEach(async () => {
  await Promise.all(proxies.splice(0).map((proxy) => proxy.stop()));
  await world.close();
});

const startProxy = async (port = 0): Promise<ForwardProxy> => {
  const proxy = await startForwardProxy({ host: PROXY_HOST, port });
  proxies.push(proxy);
  return proxy;
};
const dead = async () => {
  const peer = await startPeer(() => undefined);
  await peer.close();
  return { host: '127.0.0.1', port: peer.port };
};
const published = ({ ref }: ProxyRecord) => ({ uid: ref.uid, reason: 'published' });
const report = ({ ref }: ProxyRecord) => ({ uid: ref.uid, reason: 'report' });
const stateOf = async (record: ProxyRecord) => (await world.serving(record))?.verdict.state;

describe('an endpoint that was just published', () => {
  it('is probed within a second of the message, and opened by the first success', async () => {
    const proxy = await startProxy();
    const record = await world.publish({ place: proxy });
    const health = world.start();
    const done = deliver(health, published(record));
    await expect.poll(() => proxy.requests(), { timeout: 1000, interval: 10 }).toBe(1);
    expect(await done).toStrictEqual({ status: 204 });
    expect(await world.gate(record)).toMatchObject({ open: true });
    expect(health.nudges).toStrictEqual([{ ...record.ref, reason: 'verdict' }]);
    expect(proxy.requests()).toBe(1);
  });

  it('is tried again at growing distances until its machine listens (row 51)', async () => {
    const place = await startProxy();
    await place.stop();
    const record = await world.publish({ place });
    const health = world.start();
    const done = deliver(health, published(record));
    await expect.poll(() => health.lines.filter((line) => line.includes('ConnectRefused')).length).toBe(2);
    expect(await stateOf(record)).toBe('Unknown');
    await startProxy(place.port);
    await done;
    expect(await stateOf(record)).toBe('Healthy');
  });

  it('is given up when it is gone', async () => {
    const record = await world.publish({ place: await dead() });
    const health = world.start();
    const done = deliver(health, published(record));
    const stored = await world.records.read(record.ref.uid);
    const { serving: _, ...without } = record;
    if (stored) await world.records.write(without, stored.version);
    expect(await done).toStrictEqual({ status: 204 });
    expect(health.nudges).toStrictEqual([]);
    expect(await world.serving(record)).toBeUndefined();
  });

  it('is not probed twice at once by messages that come twice', async () => {
    const silent = await world.parts.peer(() => undefined);
    const place = { host: '127.0.0.1', port: silent.port };
    const record = await world.publish({
      place,
      old: true,
      check: { timeoutSeconds: 1, failureThreshold: 1 },
    });
    const health = world.start();
    await Promise.all([deliver(health, published(record)), deliver(health, published(record))]);
    expect(silent.accepted()).toBe(1);
  });

  it('a message that comes again, after the verdict, repeats the nudge only', async () => {
    const proxy = await startProxy();
    const record = await world.publish({ place: proxy });
    const health = world.start();
    health.pubsubAway = true;
    const failure = await deliver(health, published(record)).catch((error: unknown) => error);
    expect(hasCode(failure, 'Transient')).toBe(true);
    expect(await stateOf(record)).toBe('Healthy');
    health.pubsubAway = false;
    const requests = proxy.requests();
    await deliver(health, published(record), 2);
    expect(health.nudges).toHaveLength(1);
    expect(proxy.requests()).toBe(requests);
  });

  it('as a candidate is judged by itself, while the serving one stays', async () => {
    const serving = await startProxy();
    const record = await world.publish({ place: serving, state: 'Healthy', exitAddress: PROXY_HOST });
    const other = await world.publish({ place: await startProxy() });
    const stored = await world.records.read(record.ref.uid);
    if (stored && other.serving)
      await world.records.write({ ...record, candidate: other.serving }, stored.version);
    await deliver(world.start(), published(record));
    const { candidate, serving: after } = (await world.records.read(record.ref.uid))?.record ?? {};
    expect(candidate?.verdict.state).toBe('Healthy');
    expect(after).toStrictEqual(record.serving);
    expect(serving.requests()).toBe(0);
  });
});

describe('an endpoint that crawlers complain about (row 73)', () => {
  it('is judged now, with its thresholds, once for all complaints', async () => {
    const lost = await world.parts.peer((socket) => socket.destroy());
    const place = { host: '127.0.0.1', port: lost.port };
    const record = await world.publish({ place, state: 'Healthy' });
    const health = world.start();
    await Promise.all(Array.from({ length: 100 }, () => deliver(health, report(record))));
    expect((await world.serving(record))?.verdict).toMatchObject({
      state: 'Unhealthy',
      outcome: 'ConnectionLost',
    });
    expect(await world.gate(record)).toMatchObject({ open: false });
    expect(lost.accepted()).toBe(2);
    expect(health.nudges).toHaveLength(1);
  });

  it('stays as it is when it answers', async () => {
    const record = await world.publish({
      place: await startProxy(),
      state: 'Healthy',
      exitAddress: PROXY_HOST,
    });
    const before = await world.versions();
    await deliver(world.start(), report(record));
    expect(await world.versions()).toStrictEqual(before);
  });

  it('is not condemned by a prober that cannot see its target', async () => {
    const record = await world.publish({ place: await dead(), state: 'Healthy' });
    const target = targetAt(`https://127.0.0.1:${(await dead()).port}/`);
    const health = world.start({ target });
    await deliver(health, report(record));
    expect(await stateOf(record)).toBe('Healthy');
    expect(health.lines.some((line) => line.includes('ProberBlind'))).toBe(true);
  });

  it('a message that was cut off between verdict and nudge repeats the nudge', async () => {
    const record = await world.publish({ place: await dead(), state: 'Unhealthy' });
    const health = world.start();
    await deliver(health, report(record));
    expect(health.nudges).toStrictEqual([]);
    await deliver(health, report(record), 2);
    expect(health.nudges).toHaveLength(1);
  });
});

describe('messages that mean nothing', () => {
  it.each([
    'not json',
    '{}',
    '{"message":{"data":"bm9uc2Vuc2U=","messageId":"1"}}',
    `{"message":{"data":"${Buffer.from('{"uid":"../x","reason":"published"}').toString('base64')}","messageId":"1"}}`,
    `{"message":{"data":"${Buffer.from(`{"uid":"${randomUUID()}","reason":"whim"}`).toString('base64')}","messageId":"1"}}`,
  ])('%j is logged and acknowledged', async (body) => {
    const health = world.start();
    expect(await deliverRaw(health, body)).toStrictEqual({ status: 204 });
    expect(health.lines.some((line) => line.includes('probe message dropped'))).toBe(true);
  });

  it('a proxy that is not there, or of another installation, is acknowledged and left alone', async () => {
    const health = world.start();
    expect(await deliver(health, { uid: randomUUID(), reason: 'published' })).toStrictEqual({ status: 204 });
    const record = await world.publish({ place: await startProxy() });
    const stranger = world.start({ installation: 'other' });
    for (const message of [published(record), report(record)])
      expect(await deliver(stranger, message)).toStrictEqual({ status: 204 });
    expect(await stateOf(record)).toBe('Unknown');
    expect(proxies[0]?.requests()).toBe(0);
  });
});
