import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { SystemError } from '#shared/app/errors.ts';
import type { ProxyRecord } from '#shared/domain/record.ts';

import { PROXY_HOST } from './parts.ts';
import { startPeer } from './servers.ts';
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

describe('a record that changes while a round is under way', () => {
  it('is judged again, and keeps what the other writer wrote', async () => {
    const record = await world.publish({ place: good() });
    let interfered = false;
    const health = world.start({
      records: {
        ...world.records,
        async write(next, version) {
          if (!interfered) {
            interfered = true;
            const stored = await world.records.read(record.ref.uid);
            if (stored) await world.records.write({ ...stored.record, maxLeases: 9 }, stored.version);
          }
          return world.records.write(next, version);
        },
      },
    });
    await round(health);
    expect(await stateOf(record)).toBe('Healthy');
    expect(await world.gate(record)).toMatchObject({ open: true, maxLeases: 9 });
  });

  it('with another endpoint: the old verdict does not carry over (N4, B1)', async () => {
    const record = await world.publish({ place: good() });
    const nowhere = await dead();
    const health = world.start({
      records: {
        ...world.records,
        async write(next, version) {
          const stored = await world.records.read(record.ref.uid);
          const { serving } = stored?.record ?? {};
          if (stored && serving?.endpoint.id === record.serving?.endpoint.id && serving)
            await world.records.write(
              {
                ...stored.record,
                serving: { ...serving, endpoint: { ...serving.endpoint, ...nowhere, id: 'new' } },
              },
              stored.version,
            );
          return world.records.write(next, version);
        },
      },
    });
    await round(health);
    expect(await stateOf(record)).toBe('Unknown');
    expect(await world.gate(record)).toMatchObject({ open: false, endpoint: { id: 'new' } });
  });
});

describe('rounds and trouble', () => {
  it('a nudge that was not published is repeated by the next round, and then no more', async () => {
    const record = await world.publish({ place: good() });
    const first = world.start();
    first.pubsubAway = true;
    await round(first);
    expect(await world.gate(record)).toMatchObject({ open: true });
    first.pubsubAway = false;
    await round(first);
    expect(first.nudges.map(({ uid }) => uid)).toStrictEqual([record.ref.uid]);
    await round(first);
    await round(first);
    expect(first.nudges).toHaveLength(1);
  });

  it('an instance that dies between verdict and nudge loses none', async () => {
    const record = await world.publish({ place: good() });
    const dying = world.start({ publisher: { change: () => new Promise(() => undefined) } });
    void round(dying);
    await expect.poll(async () => (await world.gate(record)).open, { timeout: 10_000 }).toBe(true);
    // Its claim runs out.
    await world.db.collection('rounds').doc('test-0').update({ until: 0 });
    const next = world.start();
    await round(next);
    expect(next.nudges.map(({ uid }) => uid)).toStrictEqual([record.ref.uid]);
  });

  it('one verdict that cannot be written keeps no other from it (row 34)', async () => {
    const [cursed, fine] = [await world.publish({ place: good() }), await world.publish({ place: good() })];
    const health = world.start({
      records: {
        ...world.records,
        write: (next, version) =>
          next.ref.uid === cursed.ref.uid
            ? Promise.reject(new SystemError('Transient', 'deadline'))
            : world.records.write(next, version),
      },
    });
    expect(await round(health)).toMatchObject({ status: 200, body: { failed: 1 } });
    expect(await stateOf(cursed)).toBe('Unknown');
    expect(await stateOf(fine)).toBe('Healthy');
  });

  it('two at once: one steps aside (row 24)', async () => {
    const hanging = await world.parts.peer(() => undefined);
    await world.publish({ place: { host: '127.0.0.1', port: hanging.port } });
    const [one, two] = [world.start(), world.start()];
    const replies = await Promise.all([round(one), round(one), round(two)]);
    const kinds = replies.map(({ body }) => body).map((body) => JSON.stringify(body).includes('"skipped"'));
    expect(kinds.filter((skipped) => !skipped)).toHaveLength(1);
    expect(hanging.accepted()).toBe(1);
  });

  it('failures in a row that fit into no round add up over rounds', async () => {
    const check = { timeoutSeconds: 45, failureThreshold: 3 };
    const record = await world.publish({ place: await dead(), state: 'Healthy', check });
    const health = world.start();
    await round(health);
    expect(await stateOf(record)).toBe('Healthy');
    for (let more = 0; more < 2 && (await stateOf(record)) === 'Healthy'; more += 1) await round(health);
    expect(await stateOf(record)).toBe('Unhealthy');
  });

  it('an unreadable record hides no other', async () => {
    const record = await world.publish({ place: good() });
    await world.db.collection('proxies').doc('odd').set({ installation: 'test', probed: true, record: 'x' });
    const health = world.start();
    await round(health);
    expect(await stateOf(record)).toBe('Healthy');
    expect(health.lines.some((line) => line.includes('not readable'))).toBe(true);
  });
});
