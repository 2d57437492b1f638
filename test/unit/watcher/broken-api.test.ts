import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';

import { systemClock } from '#shared/app/clock.ts';
import { systemIds } from '#shared/app/ids.ts';
import { makeLog } from '#shared/app/log.ts';
import { noMetrics } from '#shared/app/metrics.ts';
import { pause } from '#shared/app/wait.ts';
import { openCluster } from '#shared/kubernetes/cluster.ts';
import { makeAuthority, type Issued } from '#test/services/authority.ts';

import { makeWatcher } from '../../../functions/watcher/handler.ts';
import type { WatchTimes } from '../../../functions/watcher/watch-loop.ts';
import { openApiServer, refusal, type ApiServer, type Fault } from './api-server.ts';
import { INSTALLATION, fakeTopic } from './builders.ts';

const PATIENCE = { timeout: 25_000, interval: 5 };
const SLOW = { timeout: 60_000 };
const TIMES: WatchTimes = {
  timeoutSeconds: 600,
  silenceMs: 600_000,
  relistMs: 600_000,
  retryMinMs: 5,
  retryMaxMs: 20,
};

let api: ApiServer;
let stranger: Issued;
beforeAll(async () => {
  stranger = await (await makeAuthority('Stranger')).issue('127.0.0.1');
});
beforeEach(async () => {
  api = await openApiServer();
});
afterEach(() => api.close());

const stops = new Set<() => Promise<void>>();
afterEach(async () => {
  await Promise.all([...stops].map((stop) => stop()));
  stops.clear();
});

const start = (times: Partial<WatchTimes> = {}, namespaces: readonly string[] = ['crawlers']) => {
  const topic = fakeTopic();
  const lines: string[] = [];
  const tools = { clock: systemClock, ids: systemIds, log: makeLog((line) => lines.push(line)) };
  const cluster = openCluster({ kubeconfig: api.kubeconfig }, { ...tools, component: 'test' });
  const watcher = makeWatcher({
    ...tools,
    metrics: noMetrics,
    cluster,
    publisher: topic,
    installation: INSTALLATION,
    namespaces,
    pods: false,
    times: { ...TIMES, ...times },
  });
  const end = new AbortController();
  const run = watcher.run(end.signal);
  stops.add(async () => {
    end.abort();
    await run;
    await cluster.close();
  });
  const told = (uid: string) => topic.published.filter((message) => message.uid === uid);
  return { watcher, topic, lines, reasons: (uid: string) => told(uid).map(({ reason }) => reason) };
};

const watched = () => vi.waitUntil(() => api.watches().length === 1, PATIENCE);

const answer =
  (code: number, body: unknown, headers: Record<string, string> = {}): Fault =>
  (response) => {
    response
      .writeHead(code, { 'content-type': 'application/json', ...headers })
      .end(typeof body === 'string' ? body : JSON.stringify(body));
  };
const reset: Fault = (response) => response.socket?.destroy();
const status = (code: number, reason: string, headers: Record<string, string> = {}): Fault =>
  answer(code, refusal(code, reason), headers);

const line = (event: unknown): string => `${JSON.stringify(event)}\n`;
/** Says this on the live watch, which stays open unless the watcher leaves it. */
const say = (text: string) => (): void => {
  for (const watch of api.watches()) watch.write(text);
};
const times = (count: number, fault: Fault): readonly Fault[] => Array.from({ length: count }, () => fault);
/** The live watch ends as if its time were over; what comes next fails. */
const end = (faults: Partial<Record<'list' | 'watch', readonly Fault[]>>) => (): void => {
  api.faults.list.push(...(faults.list ?? []));
  api.faults.watch.push(...(faults.watch ?? []));
  for (const watch of api.watches()) watch.end();
};

/** What goes wrong while one Proxy is edited, one deleted, one made anew under its name, and one left alone. */
const TROUBLES: Readonly<Record<string, () => void>> = {
  'a reset connection': () => api.cut(),
  'row 2: a reset connection, then 503s': () => {
    api.faults.list.push(...times(3, status(503, 'ServiceUnavailable')));
    api.cut();
  },
  'certificates of a stranger, for a while': () => {
    api.cut(stranger);
    setTimeout(() => api.cut(api.own), 100);
  },
  'resets of new requests': end({ watch: times(2, reset), list: times(3, reset) }),
  'row 9: 401': end({ watch: [status(401, 'Unauthorized')], list: times(2, status(401, 'Unauthorized')) }),
  '403': end({ watch: times(2, status(403, 'Forbidden')), list: [status(403, 'Forbidden')] }),
  '404, the definition missing': end({
    watch: [answer(404, '404 page not found\n')],
    list: times(2, answer(404, '404 page not found\n')),
  }),
  'row 4: 410 as an answer': end({ watch: [status(410, 'Expired')] }),
  'row 4: 410 in the stream': say(line({ type: 'ERROR', object: refusal(410, 'Expired') })),
  '429': end({ watch: [status(429, 'TooManyRequests')], list: [status(429, 'TooManyRequests')] }),
  '500': end({ watch: times(2, status(500, 'InternalError')), list: [status(500, 'InternalError')] }),
  'an error in the stream that is not 410': say(
    line({ type: 'ERROR', object: refusal(500, 'InternalError') }),
  ),
  'an error in the stream that says nothing': say(line({ type: 'ERROR', object: null })),
  'garbage in the stream': say('<html>not json</html>\n'),
  'half a line, then the end': () => {
    say('{"type":"MODIFIED","obj')();
    end({})();
  },
  'a kind of event that nobody knows': say(line({ type: 'SYNC', object: {} })),
  'a bookmark of nothing': say(line({ type: 'BOOKMARK', object: {} })),
  'a line of 20 MB': say('x'.repeat(20_000_000)),
  'row 3: watches that end as soon as they begin': end({ watch: times(5, answer(200, '')) }),
  'a list that is a page of HTML': end({ watch: [reset], list: [answer(200, '<html></html>')] }),
  'a list of something else': end({
    watch: [reset],
    list: [answer(200, { kind: 'PodList', metadata: { resourceVersion: '1' }, items: [] })],
  }),
  'a list that ends in the middle': end({ watch: [reset], list: [answer(200, '{"kind":"ProxyList","met')] }),
};

/** These belong to the usual course of things. */
const QUIET = new Set([
  'row 4: 410 as an answer',
  'row 4: 410 in the stream',
  'half a line, then the end',
  'row 3: watches that end as soon as they begin',
]);

describe(
  'a watcher goes on, tells what happened meanwhile and nothing else, with one watch, after',
  SLOW,
  () => {
    test.each(Object.entries(TROUBLES))('%s', async (title, begin) => {
      const edited = api.put('edited');
      const deleted = api.put('deleted');
      const before = api.put('remade');
      const untouched = api.put('untouched');
      const { reasons, lines } = start();
      await watched();
      begin();
      api.put('edited', { metadata: { generation: 2 } }, false);
      api.remove('deleted', false);
      api.remove('remade', false);
      const after = api.put('remade', { status: {} }, false);
      await vi.waitFor(() => {
        expect(reasons(edited)).toEqual(['SpecChanged']);
        expect([reasons(deleted), reasons(before), reasons(after)]).toEqual([['Gone'], ['Gone'], ['New']]);
      }, PATIENCE);
      await watched();
      // Told on the new watch: so that it is alive, and everything before it was dealt with.
      const last = api.put('last', { status: {} });
      await vi.waitFor(() => expect(reasons(last)).toEqual(['New']), PATIENCE);
      expect([reasons(edited), reasons(untouched)]).toEqual([['SpecChanged'], []]);
      expect(api.mostWatches()).toBe(1);
      expect(lines.some((said) => said.includes('the watch broke'))).toBe(!QUIET.has(title));
    });
  },
);

const live = async ({ watcher }: ReturnType<typeof start>, path: string): Promise<number> =>
  (
    await watcher.http({
      method: 'GET',
      path,
      query: new URLSearchParams(),
      headers: {},
      body: new Uint8Array(),
    })
  ).status;

describe('a watcher', SLOW, () => {
  test.each([
    ['no spec that can be read', { spec: 'text' }],
    ['no status that can be read', { status: [] }],
  ])('tells of the others, however many have %s', async (_, unreadable) => {
    const bad = api.put('bad', unreadable);
    const good = api.put('good', { status: {} });
    const { reasons } = start();
    await vi.waitFor(() => expect(reasons(good)).toEqual(['New']), PATIENCE);
    await watched();
    api.put('bad', { ...unreadable, metadata: { labels: { a: 'b' } } });
    const last = api.put('last', { status: {} });
    await vi.waitFor(() => expect(reasons(last)).toEqual(['New']), PATIENCE);
    expect(reasons(bad)).not.toContain('Gone');
    expect(api.requests('list')).toHaveLength(1);
  });

  test('watches the other namespaces while one is refused, and lives, though it is not ready', async () => {
    const forbidden = Array.from({ length: 1000 }, () => status(403, 'Forbidden'));
    const changed = api.put('changed', { status: {} });
    api.refused.set('no-such-namespace', forbidden);
    const running = start({}, ['no-such-namespace', 'crawlers']);
    await vi.waitFor(() => expect(running.reasons(changed)).toEqual(['New']), PATIENCE);
    await watched();
    await vi.waitUntil(() => api.requests('list').length > 5, PATIENCE);
    api.put('changed', { metadata: { generation: 2 } });
    await vi.waitFor(() => expect(running.reasons(changed)).toEqual(['New', 'SpecChanged']), PATIENCE);
    expect([await live(running, '/live'), await live(running, '/ready')]).toEqual([200, 503]);
  });

  test('row 1: leaves a watch that has fallen silent, and one that was never answered', async () => {
    const edited = api.put('edited');
    const { reasons } = start({ silenceMs: 150 });
    await watched();
    api.faults.watch.push(() => undefined);
    api.put('edited', { metadata: { generation: 2 } }, false);
    await vi.waitFor(() => expect(reasons(edited)).toEqual(['SpecChanged']), PATIENCE);
    await vi.waitUntil(() => api.requests('watch').length >= 3, PATIENCE);
    await watched();
    expect(api.mostWatches()).toBe(1);
  });

  test('row 6: stays with a watch on which something is said from time to time', async () => {
    start({ silenceMs: 1500 });
    await watched();
    const begun = performance.now();
    for (let n = 0; performance.now() - begun < 2000; n += 1) {
      say(line({ type: 'BOOKMARK', object: { metadata: { resourceVersion: String(200 + n) } } }))();
      await pause(20);
    }
    expect([api.requests('list').length, api.requests('watch').length]).toEqual([1, 1]);
  });

  test('row 3: asks less and less often while it is refused, and never faster than the least wait', async () => {
    api.faults.list.push(...times(8, status(503, 'ServiceUnavailable')));
    start({ retryMinMs: 40, retryMaxMs: 80 });
    await watched();
    const at = api.requests('list').map((request) => request.at);
    const gaps = at.slice(1).map((time, index) => time - (at[index] ?? 0));
    expect(gaps).toHaveLength(8);
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(39);
  });

  test('beside another one, during a rollout, makes no more of a change than a second message', async () => {
    const edited = api.put('edited');
    const untouched = api.put('untouched');
    const [old, young] = [start(), start()];
    await vi.waitUntil(() => api.watches().length === 2, PATIENCE);
    api.put('edited', { metadata: { generation: 2 } });
    await vi.waitFor(() => {
      expect([old.reasons(edited), young.reasons(edited)]).toEqual([['SpecChanged'], ['SpecChanged']]);
    }, PATIENCE);
    expect([old.reasons(untouched), young.reasons(untouched)]).toEqual([[], []]);
  });
});
