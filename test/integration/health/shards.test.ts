import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import type { ProxyRecord } from '#shared/domain/record.ts';
import { BUCKETS, bucketOf, bucketRange } from '#shared/domain/shard.ts';

import { PROXY_HOST, targetAt } from './parts.ts';
import { echoAnswer, startPeer, startTarget, tunnelTo } from './servers.ts';
import { spyOn } from './spy.ts';
import { round, startWorld, type World } from './world.ts';

let world: World;
beforeEach(async () => {
  world = await startWorld();
});
afterEach(() => world.close());

const stateOf = async (record: ProxyRecord) => (await world.serving(record))?.verdict.state;
/** Proxies on addresses of their own, all of which tunnel to the echo. */
const publishMany = async (count: number, port = world.parts.tunnel.port): Promise<ProxyRecord[]> => {
  const records: ProxyRecord[] = [];
  while (records.length < count) {
    const few = Array.from({ length: Math.min(20, count - records.length) }, (_, offset) =>
      world.publish({
        place: { host: `127.20.1.${records.length + offset + 1}`, port },
        state: 'Healthy',
        exitAddress: '127.0.0.1',
        check: { failureThreshold: 1, timeoutSeconds: 20 },
      }),
    );
    records.push(...(await Promise.all(few)));
  }
  return records;
};

describe('shards', () => {
  it('hold every bucket, each once, whatever their number', () => {
    for (let count = 1; count <= BUCKETS; count += 1) {
      const held = Array.from({ length: count }, (_, index) => bucketRange(index, count)).flatMap(
        ({ from, to }) => Array.from({ length: to - from }, (_unused, offset) => from + offset),
      );
      expect(held).toStrictEqual(Array.from({ length: BUCKETS }, (_, bucket) => bucket));
    }
  });

  it('row 24: are shared out between overlapping runs, and no proxy is probed twice', async () => {
    const records = await publishMany(60);
    const instances = [0, 1, 2].map(() => world.start({ shards: 4 }));
    const replies = await Promise.all(instances.map(round));
    expect(world.parts.tunnel.accepted()).toBe(60);
    const endpoints = replies.map(({ body }) =>
      typeof body === 'object' && body !== null && 'endpoints' in body ? Number(body.endpoints) : 0,
    );
    expect(endpoints.reduce((sum, count) => sum + count, 0)).toBe(60);
    const documents = (await world.db.collection('rounds').get()).docs.map(({ id }) => id);
    expect(documents).toStrictEqual(['test-0', 'test-1', 'test-2', 'test-3']);
    expect(new Set(records.map(({ ref }) => bucketOf(ref.uid))).size).toBeGreaterThan(8);
  });

  it('cost one write each when steady, and for k flips at most 2k + 2 (goal 9)', async () => {
    const dying = await startPeer(tunnelTo(world.parts.echo.port), '0.0.0.0');
    await publishMany(30);
    const turned = await publishMany(5, dying.port);
    const health = world.start({ shards: 4 });
    await round(health);
    const spy = spyOn(world.db);
    await round(health);
    expect(spy.writes()).toBe(4);
    await dying.close();
    spy.reset();
    expect(await round(health)).toMatchObject({ body: { changes: 5, failed: 0 } });
    expect(spy.writes()).toBeGreaterThanOrEqual(2 * 5 + 4);
    expect(spy.writes()).toBeLessThanOrEqual(2 * 5 + 2 * 4);
    expect(await Promise.all(turned.map(stateOf))).toStrictEqual(turned.map(() => 'Unhealthy'));
  });

  it('one of which cannot be read keeps no other from its round', async () => {
    await publishMany(30);
    const health = world.start({
      shards: 4,
      records: {
        ...world.records,
        probed: (installation, buckets) =>
          buckets?.from === 0
            ? Promise.reject(new TypeError('no such luck'))
            : world.records.probed(installation, buckets),
      },
    });
    expect(await round(health)).toMatchObject({ status: 200, body: { shards: { done: 3, failed: 1 } } });
  });
});

describe('many proxies and one target', () => {
  it('row 72: 200 proxies on one tick do not trip a target that allows 20 at once', async () => {
    const certificate = await world.parts.authority.issue('127.0.0.1');
    let now = 0;
    let most = 0;
    const limited = await startTarget((request, response) => {
      now += 1;
      most = Math.max(most, now);
      response.on('close', () => {
        now -= 1;
      });
      if (now > 20) response.writeHead(429).end();
      else setTimeout(() => echoAnswer(request, response), 30);
    }, certificate);
    const tunnel = await startPeer(tunnelTo(limited.port), '0.0.0.0');
    await publishMany(200, tunnel.port);
    const health = world.start({
      probesAtOnce: 16,
      target: targetAt(`https://127.0.0.1:${limited.port}/`),
    });
    expect(await round(health)).toMatchObject({ body: { outcomes: { Ok: 200 }, changes: 0 } });
    expect(most).toBeGreaterThan(4);
    expect(most).toBeLessThanOrEqual(20);
    await Promise.all([tunnel.close(), limited.close()]);
  });
});

describe('alerts', () => {
  it('a round that comes long after the one before says so, and condemns nothing for it (idea 9)', async () => {
    const record = await world.publish({
      place: { host: PROXY_HOST, port: world.parts.open.port },
      state: 'Healthy',
      exitAddress: PROXY_HOST,
    });
    const health = world.start();
    await round(health);
    expect(health.lines.join('')).not.toContain('RoundsMissed');
    await world.db
      .collection('rounds')
      .doc('test-0')
      .update({ claimedAt: Date.now() - 600_000 });
    expect(await round(health)).toMatchObject({ body: { changes: 0 } });
    expect(health.lines.join('')).toContain('"alert":"RoundsMissed"');
    expect(await stateOf(record)).toBe('Healthy');
  });
});
