import { describe, expect, test, vi } from 'vitest';

import { SystemError } from '#shared/app/errors.ts';
import type { SecretReading } from '#shared/kubernetes/cluster.ts';

import { makeSecretIndex, type SecretName } from '../../../functions/watcher/secret-index.ts';
import { runSecretLoop } from '../../../functions/watcher/secret-loop.ts';
import { aView, middlingIds, silentLog, uidOf } from './builders.ts';

const secret = (name: string): SecretName => ({ namespace: 'crawlers', name });

describe('the index of Secrets', () => {
  test('holds a Secret as long as somebody refers to it', () => {
    const index = makeSecretIndex();
    const [one, two] = [aView(1, { secrets: ['a', 'b'] }), aView(2, { secrets: ['b'] })];
    index.update(undefined, one);
    index.update(undefined, two);
    expect(index.size).toBe(2);
    index.update(one, { ...one, secrets: ['c'] });
    expect(index.size).toBe(2);
    index.update({ ...one, secrets: ['c'] }, undefined);
    index.update(two, undefined);
    expect(index.size).toBe(0);
  });

  test('tells the users of a Secret once per version', () => {
    const index = makeSecretIndex();
    index.update(undefined, aView(1, { secrets: ['a'] }));
    index.update(undefined, aView(2, { secrets: ['a'] }));
    expect(index.record(secret('a'), '1', 0)).toEqual([uidOf(1), uidOf(2)]);
    expect(index.record(secret('a'), '1', 1)).toEqual([]);
    expect(index.record(secret('a'), '2', 2)).toEqual([uidOf(1), uidOf(2)]);
    expect(index.versionsFor(aView(1, { secrets: ['a', 'unread'] }))).toEqual({ a: '2' });
  });

  test('keeps Secrets of the same name in two namespaces apart', () => {
    const index = makeSecretIndex();
    const there = aView(2, { ref: { namespace: 'other', name: 'p', uid: uidOf(2) }, secrets: ['a'] });
    index.update(undefined, aView(1, { secrets: ['a'] }));
    index.update(undefined, there);
    expect(index.record(secret('a'), '1', 0)).toEqual([uidOf(1)]);
    expect(index.versionsFor(there)).toEqual({});
  });
});

const RUN = { everyMs: 40, gapMs: 1, retryMinMs: 1, retryMaxMs: 2 };

/** Runs the loop until `enough`, and returns what it read and said. */
const runUntil = async (
  names: readonly string[],
  read: (name: string, count: number) => SecretReading,
  enough: (reads: readonly string[]) => boolean,
) => {
  const index = makeSecretIndex();
  index.update(undefined, aView(1, { secrets: names }));
  const reads: string[] = [];
  const times: number[] = [];
  const news: (readonly string[])[] = [];
  const end = new AbortController();
  const loop = runSecretLoop(
    {
      index,
      read: async ({ name }) => {
        reads.push(name);
        times.push(performance.now());
        return read(name, reads.filter((other) => other === name).length);
      },
      onNews: (uids) => news.push(uids),
      clock: { now: () => Date.now(), monotonic: () => performance.now() },
      ids: middlingIds,
      log: silentLog,
      ...RUN,
    },
    end.signal,
  );
  await vi.waitUntil(() => enough(reads), { interval: 1, timeout: 5000 });
  end.abort();
  await loop;
  return { index, reads, times, news: news.filter((uids) => uids.length > 0) };
};

const found = (version: string): SecretReading => ({ kind: 'found', labels: {}, data: {}, version });

describe('the loop over Secrets', () => {
  test('reads each in turn, none sooner than its interval', async () => {
    const { reads, times } = await runUntil(
      ['a', 'b', 'c'],
      () => found('1'),
      ({ length }) => length >= 9,
    );
    expect(reads.slice(0, 9)).toEqual(['a', 'b', 'c', 'a', 'b', 'c', 'a', 'b', 'c']);
    const gaps = times.slice(3).map((time, at) => time - (times[at] ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(RUN.everyMs - 2);
  });

  test('an outage is no news, and does not stop it', async () => {
    const { news, index } = await runUntil(
      ['a'],
      (_, count) => {
        if (count === 2) throw new SystemError('Transient', 'away');
        return found(count < 4 ? '1' : '2');
      },
      ({ length }) => length >= 5,
    );
    expect(news).toHaveLength(2);
    expect(index.versionsFor(aView(1, { secrets: ['a'] }))).toEqual({ a: '2' });
  });

  test('a missing Secret has a version of its own, one that is refused has none', async () => {
    const { index } = await runUntil(
      ['gone', 'refused'],
      (name) => (name === 'gone' ? { kind: 'missing' } : { kind: 'unreadable', message: 'forbidden' }),
      ({ length }) => length >= 2,
    );
    expect(index.versionsFor(aView(1, { secrets: ['gone', 'refused'] }))).toEqual({ gone: 'missing' });
  });
});
