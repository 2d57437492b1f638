/** Row 20: a platform may freeze an instance once its answer is out, so that nothing may still be under way. */

import { setImmediate as turn } from 'node:timers/promises';

import { describe, expect, it } from 'vitest';

import { makeLog } from '#shared/app/log.ts';
import { noMetrics } from '#shared/app/metrics.ts';
import type { HttpReply } from '#shared/app/http.ts';
import type { ProbeOutcome, VerdictState } from '#shared/domain/verdict.ts';

import { makeHandler as makeDiscovery } from '../../../functions/discovery/handler.ts';
import { makeHandler as makeEcho } from '../../../functions/echo/handler.ts';
import { makeHandler as makeHealth } from '../../../functions/health/handler.ts';
import { makeHandler as makeProvision } from '../../../functions/provision/handler.ts';
import { fakeLeases } from '../discovery/fakes.ts';
import { call } from '../gc/fakes.ts';
import { worldOfOrphans } from '../gc/runs.ts';
import { healthParts, probeOf } from '../health/one-proxy.ts';
import { gate, leaseDocument, UID } from '../lease/builders.ts';
import { partsOf } from '../provision/parts.ts';
import { REF, newWorld } from '../provision/world.ts';

interface Calls {
  begun: number;
  open: number;
}

/** The same object, whose calls that take time are counted, those of its parts included. Each takes some turns longer. */
const watched = <T extends object>(calls: Calls, value: T): T => {
  const seen = (found: unknown): unknown =>
    (typeof found === 'object' || typeof found === 'function') && found !== null
      ? watched(calls, found)
      : found;
  const slow = async (result: Promise<unknown>): Promise<unknown> => {
    calls.begun += 1;
    calls.open += 1;
    try {
      await turn();
      await turn();
      return await result;
    } finally {
      calls.open -= 1;
    }
  };
  return new Proxy(value, {
    get: (target, key) => {
      const own = Reflect.getOwnPropertyDescriptor(target, key);
      // A proxy may not show a fixed property as another value.
      const found: unknown = Reflect.get(target, key);
      return own && !own.configurable && !own.writable ? found : seen(found);
    },
    apply: (target, self, given) => {
      if (typeof target !== 'function') throw new TypeError('not a function');
      const result: unknown = Reflect.apply(target, self, given);
      return result instanceof Promise ? slow(result) : result;
    },
  });
};

const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;

const request = (body: unknown, path = '/') => ({
  method: 'POST',
  path,
  query: new URLSearchParams(),
  headers: { 'content-type': 'application/json' },
  body: new TextEncoder().encode(JSON.stringify(body)),
});

interface Aftermath {
  readonly status: number;
  /** Calls under way at the answer, calls that began after it, timers that it left. */
  readonly open: number;
  readonly late: number;
  readonly timers: number;
}

const aftermath = async (count: () => Calls, run: () => Promise<HttpReply>): Promise<Aftermath> => {
  const before = timers();
  const { status } = await run();
  const { begun, open } = count();
  if (begun === 0) throw new Error('nothing was called');
  for (let turns = 0; turns < 50; turns += 1) await turn();
  return { status, open, late: count().begun - begun, timers: Math.max(0, timers() - before) };
};

const QUIET = { open: 0, late: 0, timers: 0 };

describe('row 20: when the answer is out, no call is under way, none follows, and no timer runs', () => {
  it('and whatever does otherwise is seen', async () => {
    const calls: Calls = { begun: 0, open: 0 };
    const port = watched(calls, { write: () => Promise.resolve() });
    let timer: NodeJS.Timeout | undefined;
    const careless = async (): Promise<HttpReply> => {
      void port.write().then(() => port.write());
      timer = setTimeout(() => undefined, 60_000);
      return { status: 204 };
    };
    const seen = await aftermath(() => ({ ...calls }), careless);
    clearTimeout(timer);
    expect(seen).toStrictEqual({ status: 204, open: 1, late: 1, timers: 1 });
  });

  it('provision, of a change', async () => {
    const calls: Calls = { begun: 0, open: 0 };
    const world = newWorld();
    const handler = makeProvision({
      ...watched(calls, partsOf(world)),
      metrics: noMetrics,
      namespaces: ['crawlers'],
      limits: { budgetMs: 2000, lookMs: 10 },
    });
    const data = Buffer.from(JSON.stringify({ ...REF, reason: 'Test' })).toString('base64');
    const run = () => handler(request({ message: { data, messageId: '1' } }));
    expect(await aftermath(() => ({ ...calls }), run)).toStrictEqual({ status: 204, ...QUIET });
  });

  it('gc, of a run that deletes and nudges', async () => {
    const world = await worldOfOrphans(3);
    const count = (): Calls => ({ begun: world.writes.length, open: 0 });
    expect(await aftermath(count, () => call(world))).toStrictEqual({ status: 200, ...QUIET });
  });

  it('discovery, of a lease and of a report that asks for a probe', async () => {
    const calls: Calls = { begun: 0, open: 0 };
    const fake = fakeLeases(UID, leaseDocument({ gate: gate({ maxLeases: 5 }) }));
    let tokens = 0;
    const log = makeLog(() => undefined);
    const handler = makeDiscovery(
      watched(calls, {
        ...fake,
        credentials: { read: () => Promise.resolve(undefined) },
        publisher: { probe: () => Promise.resolve() },
        installation: 'test',
        namespaces: ['*'],
        ttl: { minSeconds: 10, maxSeconds: 86_400, defaultSeconds: 300 },
        ids: {
          token: () => {
            tokens += 1;
            return tokens.toString(16).padStart(32, '0');
          },
          uuid: () => '',
          fraction: () => 0,
        },
        log,
        metrics: noMetrics,
      }),
    );
    const count = (): Calls => ({ ...calls });
    let leaseId = '';
    const acquire = async (): Promise<HttpReply> => {
      const reply = await handler(request({ holder: 'h' }, '/v1/leases'));
      leaseId = /"leaseId":"([^"]+)"/.exec(JSON.stringify(reply.body))?.[1] ?? '';
      return reply;
    };
    expect(await aftermath(count, acquire)).toStrictEqual({ status: 201, ...QUIET });
    const report = () => handler(request({ outcome: 'failed' }, `/v1/leases/${leaseId}/report`));
    expect(await aftermath(count, report)).toStrictEqual({ status: 202, ...QUIET });
  });

  it.each<[string, VerdictState, ProbeOutcome, string, unknown, number]>([
    ['a round whose verdict flips', 'Unhealthy', 'Ok', '/', {}, 1],
    ['a round in which nothing changes', 'Healthy', 'Ok', '/', {}, 0],
    ['the first probe of an endpoint', 'Unknown', 'Ok', '/probes', probeOf('published'), 1],
    ['a report that was true', 'Healthy', 'ConnectRefused', '/probes', probeOf('report'), 1],
  ])('health, of %s', async (_, state, outcome, path, body, nudges) => {
    const calls: Calls = { begun: 0, open: 0 };
    let nudged = 0;
    const change = async (): Promise<void> => {
      nudged += 1;
    };
    const parts = { ...healthParts(state, outcome), publisher: { change } };
    // Targets are told apart by identity.
    const handler = makeHealth({ ...watched(calls, parts), targets: parts.targets });
    const { status, ...quiet } = await aftermath(
      () => ({ ...calls }),
      () => handler(request(body, path)),
    );
    expect(status).toBe(path === '/' ? 200 : 204);
    expect(quiet).toStrictEqual(QUIET);
    expect(nudged).toBe(nudges);
  });

  it('echo, which calls nobody', async () => {
    const before = timers();
    const reply = await makeEcho()({ ...request({}), method: 'GET' });
    expect(reply.status).toBeLessThan(500);
    for (let turns = 0; turns < 50; turns += 1) await turn();
    expect(timers()).toBeLessThanOrEqual(before);
  });
});
