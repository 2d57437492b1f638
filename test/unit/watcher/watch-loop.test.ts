import { describe, expect, test, vi } from 'vitest';

import { SystemError } from '#shared/app/errors.ts';
import { noMetrics } from '#shared/app/metrics.ts';
import type { ProxyListing, ProxyObject, ProxyWatchEvent } from '#shared/kubernetes/cluster.ts';

import { runWatchLoop, type WatchTimes } from '../../../functions/watcher/watch-loop.ts';
import { middlingIds, silentLog, uidOf } from './builders.ts';

const aProxy = (n: number, resourceVersion = '1'): ProxyObject => ({
  apiVersion: 'crawl.example.com/v1alpha1',
  kind: 'Proxy',
  metadata: {
    namespace: 'crawlers',
    name: `p-${n}`,
    uid: uidOf(n),
    resourceVersion,
    generation: 1,
    creationTimestamp: '2026-01-01T00:00:00Z',
  },
  spec: {},
});

const away = new SystemError('Transient', 'away');

/** A step of the API server: what the next list or watch does. A watch ends after its events, or hangs until aborted. */
type Step =
  | { readonly list: ProxyListing | Error }
  | { readonly watch: readonly ProxyWatchEvent[]; readonly end: 'close' | 'hang' | Error };

const TIMES: WatchTimes = {
  timeoutSeconds: 40,
  silenceMs: 50_000,
  relistMs: 60_000,
  retryMinMs: 2,
  retryMaxMs: 4,
};

const listing = (resourceVersion: string, ...proxies: readonly ProxyObject[]): ProxyListing => ({
  items: proxies,
  resourceVersion,
});

/** Runs the loop through the script; a call that the script does not expect fails the test. */
const play = async (script: readonly Step[], times: Partial<WatchTimes> = {}) => {
  const calls: string[] = [];
  const seen: string[] = [];
  const at: number[] = [];
  const failed: unknown[] = [];
  const end = new AbortController();
  let next = 0;
  let live = 0;
  const take = (call: string): Step => {
    calls.push(call);
    at.push(performance.now());
    const step = script[next];
    next += 1;
    if (!step) throw new Error(`unexpected ${call}`);
    return step;
  };
  const loop = runWatchLoop(
    {
      source: {
        list: async (scope) => {
          const step = take(`list ${scope}`);
          if (!('list' in step)) throw new Error('the script expects a watch');
          if (step.list instanceof Error) throw step.list;
          return step.list;
        },
        watch: async function* ({ resourceVersion, signal }) {
          const step = take(`watch ${resourceVersion}`);
          if (!('watch' in step)) throw new Error('the script expects a list');
          live += 1;
          expect(live).toBe(1);
          try {
            yield* step.watch;
            if (step.end instanceof Error) throw step.end;
            if (step.end === 'hang') {
              const { promise, resolve } = Promise.withResolvers<void>();
              signal.addEventListener('abort', () => resolve());
              await promise;
            }
          } finally {
            live -= 1;
          }
        },
      },
      sink: {
        listed: (_, proxies) => seen.push(`listed ${proxies.map(({ metadata }) => metadata.name).join('+')}`),
        changed: ({ metadata }) => seen.push(`changed ${metadata.name}`),
        deleted: ({ metadata }) => seen.push(`deleted ${metadata.name}`),
        progress: () => undefined,
        failed: (_, error) => failed.push(error),
      },
      times: { ...TIMES, ...times },
      clock: { now: () => Date.now(), monotonic: () => performance.now() },
      ids: middlingIds,
      log: silentLog,
      metrics: noMetrics,
    },
    'crawlers',
    end.signal,
  );
  await vi.waitUntil(() => next >= script.length, { interval: 1, timeout: 5000 });
  end.abort();
  await loop;
  return { calls, seen, at, failed };
};

const hang: Step = { watch: [], end: 'hang' };

describe('the watch loop', () => {
  test('continues after a closed watch where the last event or bookmark left off, without a list', async () => {
    const { calls, seen } = await play([
      { list: listing('10', aProxy(1)) },
      { watch: [{ kind: 'changed', object: aProxy(2, '11') }], end: 'close' },
      { watch: [{ kind: 'bookmark', resourceVersion: '20' }], end: 'close' },
      { watch: [{ kind: 'deleted', object: aProxy(2, '21') }], end: 'close' },
      hang,
    ]);
    expect(calls).toEqual(['list crawlers', 'watch 10', 'watch 11', 'watch 20', 'watch 21']);
    expect(seen).toEqual(['listed p-1', 'changed p-2', 'deleted p-2']);
  });

  test('row 4: lists again after a 410 inside the stream', async () => {
    const { calls, seen } = await play([
      { list: listing('10', aProxy(1)) },
      { watch: [{ kind: 'changed', object: aProxy(2, '11') }, { kind: 'expired' }], end: 'close' },
      { list: listing('30', aProxy(3)) },
      hang,
    ]);
    expect(calls).toEqual(['list crawlers', 'watch 10', 'list crawlers', 'watch 30']);
    expect(seen).toEqual(['listed p-1', 'changed p-2', 'listed p-3']);
  });

  test.each([
    ['an outage', away],
    ['a refusal', new SystemError('Unauthorised', '401')],
    ['a missing API', new SystemError('NotFound', '404')],
    ['an error of any other kind', new TypeError('of ours')],
  ])('rows 2 and 9: goes on after %s of a list and of a watch', async (_, error) => {
    const { calls, failed } = await play([
      { list: error },
      { list: listing('10') },
      { watch: [], end: error },
      { list: error },
      { list: listing('12') },
      hang,
    ]);
    expect(calls).toEqual([
      'list crawlers',
      'list crawlers',
      'watch 10',
      'list crawlers',
      'list crawlers',
      'watch 12',
    ]);
    expect(failed).toEqual([error, error, error]);
  });

  test('row 5: lists after a watch that broke, however well those before it ended', async () => {
    const { calls } = await play([
      { list: listing('10') },
      { watch: [{ kind: 'bookmark', resourceVersion: '20' }], end: 'close' },
      { watch: [], end: away },
      { list: listing('30') },
      hang,
    ]);
    expect(calls).toEqual(['list crawlers', 'watch 10', 'watch 20', 'list crawlers', 'watch 30']);
  });

  test('row 3: waits between attempts, also when watches end as soon as they begin', async () => {
    const close: Step = { watch: [], end: 'close' };
    const { at } = await play([{ list: listing('10') }, close, close, close, close, hang], {
      retryMinMs: 20,
    });
    const gaps = at.slice(2).map((time, index) => time - (at[index + 1] ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(19);
  });

  test('row 5: lists from time to time, however well the watch does', async () => {
    const { calls } = await play(
      [{ list: listing('10') }, { watch: [], end: 'close' }, { list: listing('11') }, hang],
      { relistMs: 0 },
    );
    expect(calls).toEqual(['list crawlers', 'watch 10', 'list crawlers', 'watch 11']);
  });
});
