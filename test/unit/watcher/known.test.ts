import { describe, expect, test } from 'vitest';

import { SystemError } from '#shared/app/errors.ts';

import { makeKnown } from '../../../functions/watcher/known.ts';
import { makeLiveness, livenessHandler } from '../../../functions/watcher/liveness.ts';
import { makeWarnings } from '../../../functions/watcher/warnings.ts';
import { aView, steppedClock, uidOf } from './builders.ts';

describe('what the watcher remembers', () => {
  const elsewhere = aView(3, { ref: { namespace: 'other', name: 'p-3', uid: uidOf(3) } });

  test('row 5: a list of one namespace says nothing about another', () => {
    const known = makeKnown();
    for (const view of [aView(1), aView(2), elsewhere]) known.seen(view);
    const missing = (scope: string) =>
      known.missingFrom(scope, new Set([uidOf(1)])).map(({ ref }) => ref.uid);
    expect(missing('crawlers')).toEqual([uidOf(2)]);
    expect(missing('*')).toEqual([uidOf(2), uidOf(3)]);
  });

  test('a Proxy that is gone is missed once', () => {
    const known = makeKnown();
    known.seen(aView(1));
    known.vanished(aView(1));
    expect(known.missingFrom('*', new Set())).toEqual([]);
  });

  test('how a Proxy went is judged by how it was last seen', () => {
    const known = makeKnown();
    known.seen(aView(1, { deleting: true, generation: 2 }));
    known.vanished(aView(1));
    expect(known.get(uidOf(1))).toMatchObject({ gone: true, view: { deleting: true, generation: 2 } });
  });
});

const ask = async (handler: ReturnType<typeof livenessHandler>, path: string, method = 'GET') =>
  (await handler({ method, path, query: new URLSearchParams(), headers: {}, body: new Uint8Array() })).status;

describe('liveness', () => {
  const LIMITS = { idleMs: 1000, unansweredMs: 5000 };

  test('row 1: fails when one scope has done nothing for too long, and recovers', async () => {
    const clock = steppedClock();
    const liveness = makeLiveness(['a', 'b'], LIMITS, clock);
    const handler = livenessHandler(liveness);
    expect([await ask(handler, '/live'), await ask(handler, '/ready')]).toEqual([200, 503]);
    liveness.progress('a');
    liveness.progress('b');
    expect(await ask(handler, '/ready')).toBe(200);
    clock.step(999);
    liveness.progress('a');
    clock.step(1);
    expect(await ask(handler, '/live')).toBe(503);
    liveness.progress('b');
    expect(await ask(handler, '/live')).toBe(200);
  });

  const forbidden = new SystemError('Unauthorised', 'no', { provider: { code: 'Forbidden', message: 'no' } });
  const away = new SystemError('Transient', 'no answer');

  test.each([
    ['goes on while one scope is refused, however long', ['a'], forbidden, 100, true],
    ['goes on while every scope is refused', [], forbidden, 100, true],
    ['goes on while one scope gets answers and the other none', ['a'], away, 100, true],
    ['goes on through an outage in which attempts follow each other', [], away, 9, true],
    [
      'row 1: fails when there was no answer about anything for longer than an outage lasts',
      [],
      away,
      10,
      false,
    ],
  ])('%s', (_, served, error, rounds, expected) => {
    const clock = steppedClock();
    const liveness = makeLiveness(['a', 'b'], LIMITS, clock);
    for (let round = 0; round < rounds; round += 1) {
      clock.step(500);
      for (const scope of ['a', 'b']) {
        if (served.includes(scope)) liveness.progress(scope);
        else liveness.failed(scope, error);
      }
    }
    expect(liveness.live()).toBe(expected);
    expect(liveness.ready()).toBe(false);
  });

  test('answers nothing else', async () => {
    const handler = livenessHandler(makeLiveness([], LIMITS, steppedClock()));
    expect(await ask(handler, '/')).toBe(404);
    expect(await ask(handler, '/live', 'POST')).toBe(405);
  });
});

const setUp = () => {
  const events: string[] = [];
  const clock = steppedClock();
  const recordEvent = ({ metadata }: { metadata: { uid: string } }): Promise<void> => {
    events.push(metadata.uid);
    return Promise.resolve();
  };
  return { events, clock, warn: makeWarnings({ recordEvent }, clock) };
};

describe('warnings on Proxies', () => {
  test('begin with the third failure in a row, and come at most every five minutes per Proxy', () => {
    const { events, clock, warn } = setUp();
    for (let failures = 1; failures < 10; failures += 1) warn(aView(1).ref, failures);
    expect(events).toHaveLength(1);
    clock.step(300_000);
    warn(aView(1).ref, 11);
    expect(events).toHaveLength(2);
  });

  test('are few when all of a fleet cannot be published', () => {
    const { events, clock, warn } = setUp();
    for (let n = 1; n <= 1000; n += 1) warn(aView(n).ref, 3);
    expect(events).toHaveLength(20);
    clock.step(60_000);
    for (let n = 1; n <= 1000; n += 1) warn(aView(n).ref, 4);
    expect(events).toHaveLength(40);
  });
});
