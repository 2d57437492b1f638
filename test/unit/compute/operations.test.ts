import { describe, expect, test } from 'vitest';

import { systemClock, type Clock } from '#shared/app/clock.ts';
import { SystemError } from '#shared/app/errors.ts';
import { makeLog } from '#shared/app/log.ts';
import type { Operation } from '#shared/compute/operation.ts';
import { makeOperationPoller, type OperationPoller } from '#shared/compute/operations.ts';
import type { OperationSource } from '#shared/compute/zone-watch.ts';

const TIMING = { intervalMs: 20, longestIntervalMs: 60_000, firstLookMs: 1, longestBackoffMs: 40 };
const ZONE = 'europe-west1-b';

interface FakeSource extends OperationSource {
  readonly operations: Map<string, Operation>;
  readonly lists: { readonly zone: string; readonly limit: number }[];
  readonly gets: string[];
  /** Names that the list leaves out. */
  readonly hidden: Set<string>;
  readonly failures: Error[];
}

const fakeSource = (): FakeSource => {
  const source: FakeSource = {
    operations: new Map(),
    lists: [],
    gets: [],
    hidden: new Set(),
    failures: [],
    listOperations: (zone, limit) => {
      source.lists.push({ zone, limit });
      const failure = source.failures.shift();
      if (failure) return Promise.reject(failure);
      return Promise.resolve(
        [...source.operations.values()].filter(({ name }) => !source.hidden.has(name ?? '')),
      );
    },
    getOperation: ({ name }) => {
      source.gets.push(name);
      return Promise.resolve(source.operations.get(name));
    },
  };
  return source;
};

const open = (source: OperationSource, clock: Clock = systemClock): OperationPoller =>
  makeOperationPoller(
    source,
    clock,
    makeLog(() => undefined),
    TIMING,
  );
const never = (): AbortSignal => new AbortController().signal;
const set = (source: FakeSource, name: string, status: string): void => {
  source.operations.set(name, { name, status });
};

/** Resolves after the next `count` lists. */
const lists = async (source: FakeSource, count: number): Promise<void> => {
  const goal = source.lists.length + count;
  const deadline = performance.now() + 5_000;
  while (source.lists.length < goal) {
    if (performance.now() > deadline) throw new Error(`no ${count} lists came`);
    await new Promise((resolve) => {
      setTimeout(resolve, 2);
    });
  }
};

describe('waiting for operations', () => {
  test('row 52: goes on until the operation is done', async () => {
    const source = fakeSource();
    set(source, 'a', 'RUNNING');
    const result = open(source).wait({ zone: ZONE, name: 'a' }, never());
    await lists(source, 2);
    set(source, 'a', 'DONE');
    expect(await result).toEqual({ kind: 'succeeded' });
  });

  test('one list serves all who wait in a zone', async () => {
    const source = fakeSource();
    const poller = open(source);
    const names = Array.from({ length: 50 }, (_, index) => `op-${index}`);
    const results = names.map((name) => {
      set(source, name, 'DONE');
      return poller.wait({ zone: ZONE, name }, never());
    });
    expect(await Promise.all(results)).toEqual(names.map(() => ({ kind: 'succeeded' })));
    expect(source.lists).toEqual([{ zone: ZONE, limit: 200 }]);
    expect(source.gets).toEqual([]);
  });

  test('an operation that the list does not show is asked for by itself, now and then', async () => {
    const source = fakeSource();
    source.hidden.add('a');
    set(source, 'a', 'RUNNING');
    const result = open(source).wait({ zone: ZONE, name: 'a' }, never());
    await lists(source, 4);
    expect(source.gets).toEqual(['a']);
    set(source, 'a', 'DONE');
    expect(await result).toEqual({ kind: 'succeeded' });
    expect(source.gets).toEqual(['a', 'a']);
  });

  test('an operation that nobody knows is unknown', async () => {
    expect(await open(fakeSource()).wait({ zone: ZONE, name: 'gone' }, never())).toEqual({ kind: 'unknown' });
  });

  test('an aborted wait is still running, and without waiters no list is made', async () => {
    const source = fakeSource();
    set(source, 'a', 'RUNNING');
    const abort = new AbortController();
    const poller = open(source);
    const result = poller.wait({ zone: ZONE, name: 'a' }, abort.signal);
    await lists(source, 1);
    abort.abort();
    expect(await result).toEqual({ kind: 'running' });
    expect(await poller.wait({ zone: ZONE, name: 'a' }, abort.signal)).toEqual({ kind: 'running' });
    set(source, 'b', 'RUNNING');
    const elsewhere = poller.wait({ zone: 'us-central1-a', name: 'b' }, AbortSignal.timeout(5_000));
    await lists(source, 4);
    poller.close();
    await elsewhere;
    expect(source.lists.slice(1).map(({ zone }) => zone)).not.toContain(ZONE);
  });

  test('what has taken long is looked after less often, and who comes then is served at once', async () => {
    const source = fakeSource();
    let ahead = 0;
    const clock = { now: () => systemClock.now(), monotonic: () => systemClock.monotonic() + ahead };
    const poller = open(source, clock);
    set(source, 'a', 'RUNNING');
    const long = poller.wait({ zone: ZONE, name: 'a' }, never());
    await lists(source, 2);
    // An hour on, the next look at it alone would be a minute away.
    ahead = 3_600_000;
    await lists(source, 1);
    const before = source.lists.length;
    set(source, 'b', 'DONE');
    expect(await poller.wait({ zone: ZONE, name: 'b' }, never())).toEqual({ kind: 'succeeded' });
    expect(source.lists.length - before).toBe(1);
    poller.close();
    expect(await long).toEqual({ kind: 'running' });
  });

  test('whoever comes after the last has gone is served too', async () => {
    const source = fakeSource();
    const poller = open(source);
    for (const name of ['a', 'b', 'c']) {
      set(source, name, 'DONE');
      expect(await poller.wait({ zone: ZONE, name }, never())).toEqual({ kind: 'succeeded' });
    }
  });

  test('an outage does not end the waiting', async () => {
    const source = fakeSource();
    set(source, 'a', 'DONE');
    source.failures.push(new SystemError('Transient', '503'), new SystemError('QuotaExceeded', '403'));
    expect(await open(source).wait({ zone: ZONE, name: 'a' }, never())).toEqual({ kind: 'succeeded' });
    expect(source.lists).toHaveLength(3);
  });

  test('a missing right ends the waiting of all at once, with its error', async () => {
    const source = fakeSource();
    source.failures.push(new SystemError('Unauthorised', 'no right to list'));
    const poller = open(source);
    const results = await Promise.allSettled(
      ['a', 'b'].map((name) => poller.wait({ zone: ZONE, name }, never())),
    );
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  });

  test('N2: closing ends all waiting', async () => {
    const source = fakeSource();
    set(source, 'a', 'RUNNING');
    const poller = open(source);
    const result = poller.wait({ zone: ZONE, name: 'a' }, never());
    poller.close();
    expect(await result).toEqual({ kind: 'running' });
    expect(await poller.wait({ zone: ZONE, name: 'a' }, never())).toEqual({ kind: 'running' });
  });
});
