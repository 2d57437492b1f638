import { describe, expect, it } from 'vitest';

import { configSchema } from '../../../functions/provision/config.ts';
import { makeHandler, type HandlerParts } from '../../../functions/provision/handler.ts';
import { makeLanes } from '../../../functions/provision/lanes.ts';
import { parseConfig } from '#shared/app/config.ts';
import { systemClock } from '#shared/app/clock.ts';
import { SystemError } from '#shared/app/errors.ts';
import { systemIds } from '#shared/app/ids.ts';
import { instrument } from '#shared/app/instrumentation.ts';
import { noMetrics } from '#shared/app/metrics.ts';
import { parseTraceparent } from '#shared/app/trace-context.ts';

import { judge, partsOf } from './parts.ts';
import { REF, UID, deleteProxy, newWorld, type World } from './world.ts';

const counts: string[] = [];
const post = (world: World, body: unknown, change: Partial<HandlerParts> = {}) =>
  makeHandler({
    ...partsOf(world),
    metrics: { ...noMetrics, count: (name) => void counts.push(name) },
    namespaces: ['crawlers'],
    limits: { budgetMs: 2_000, lookMs: 10 },
    ...change,
  })({
    method: 'POST',
    path: '/',
    query: new URLSearchParams(),
    headers: {},
    body: new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body)),
  });

const push = (data: unknown) => ({
  message: { data: Buffer.from(JSON.stringify(data)).toString('base64'), messageId: '1' },
});
const change = push({ ...REF, reason: 'Test' });

/** One call while the API server answers like this. */
const away = (code: 'Transient' | 'InvalidSpec') => {
  const world = newWorld();
  const getProxy = () => Promise.reject(new SystemError(code, 'no'));
  return post(world, change, { cluster: { ...partsOf(world).cluster, getProxy } });
};

describe('a push', () => {
  it('is worked off and acknowledged', async () => {
    const world = newWorld();
    expect(await post(world, change)).toMatchObject({ status: 204 });
    expect(world.record?.value.serving).toBeDefined();
  });

  it.each(['', 'x', '[]', push('text'), push({ uid: UID }), push({ ...REF, uid: '../x' })])(
    'that says nothing is counted and acknowledged (row 19): %j',
    async (body) => {
      const world = newWorld();
      counts.length = 0;
      expect(await post(world, body)).toMatchObject({ status: 204 });
      expect(counts).toEqual(['provision_messages_dropped']);
      expect(world.calls).toEqual([]);
    },
  );

  it("about another installation's namespace is left alone", async () => {
    const world = newWorld();
    expect(await post(world, change, { namespaces: ['other'] })).toMatchObject({ status: 204 });
    expect(world.calls).toEqual([]);
  });

  it('is refused while something is away, and nothing else is (row 15)', async () => {
    expect(await away('Transient')).toMatchObject({ status: 503 });
    expect(await away('InvalidSpec')).toMatchObject({ status: 204 });
  });

  it('is refused while the provider is away', async () => {
    const world = newWorld();
    world.faults.push({ kind: 'lostAnswer' });
    expect(await post(world, change)).toMatchObject({ status: 503 });
    world.now += 20_000;
    expect(await post(world, change)).toMatchObject({ status: 204 });
    expect(world.machines.size).toBe(1);
  });

  it('is judged again when the record changes under it', async () => {
    const world = newWorld();
    const parts = partsOf(world);
    let lost = 0;
    const records: HandlerParts['records'] = {
      ...parts.records,
      write: async (record, version) => {
        lost += 1;
        if (lost <= 3) throw new SystemError('Conflict', 'somebody was faster');
        return parts.records.write(record, version);
      },
    };
    expect(await post(world, change, { records })).toMatchObject({ status: 204 });
    expect(world.calls.filter((call) => call === 'create')).toHaveLength(1);
    expect(world.record?.value.serving).toBeDefined();
  });

  it('leaves the trace of its change in the record until the Proxy has converged', async () => {
    const world = newWorld();
    const { tracing } = instrument({
      name: 'provision',
      projectId: 'p',
      clock: systemClock,
      ids: systemIds,
      write: () => undefined,
    });
    const probed: (string | undefined)[] = [];
    const publisher = {
      probe: async () => {
        probed.push(tracing.traceparent());
      },
    };
    const trace = 'c'.repeat(32);
    const attributes = { googclient_traceparent: `00-${trace}-${'b'.repeat(16)}-01` };
    const { message } = change;
    const traced = { message: { ...message, attributes } };
    await post(world, traced, { tracing, publisher });
    expect(parseTraceparent(world.record?.value.traceparent)?.traceId).toBe(trace);
    expect(parseTraceparent(probed[0])?.traceId).toBe(trace);
    judge(world, 'Healthy');
    await post(world, traced, { tracing, publisher });
    expect(world.record?.value.wakeAt).toBeUndefined();
    expect(world.record?.value.traceparent).toBeUndefined();
  });

  it('tells how long it waited', async () => {
    const world = newWorld();
    const recorded: unknown[] = [];
    const metrics = { ...noMetrics, record: (...given: unknown[]) => void recorded.push(given) };
    const publishTime = new Date(world.now - 1500).toISOString();
    await post(world, { message: { ...change.message, publishTime } }, { metrics });
    expect(recorded).toEqual([['provision_message_age_ms', {}, [1500]]]);
  });

  it('stops waiting when its Proxy is deleted', async () => {
    const world = newWorld();
    const parts = partsOf(world);
    const provider = parts.providers.gcp ?? never();
    const wait = async (operation: { name: string; zone: string }, signal: AbortSignal) => {
      if (world.calls.includes('delete')) return provider.wait(operation, signal);
      deleteProxy(world);
      await new Promise((resolve) => {
        signal.addEventListener('abort', resolve, { once: true });
      });
      world.now += 20_000;
      return { kind: 'running' } as const;
    };
    await post(world, change, { providers: { gcp: { ...provider, wait } } });
    expect(world.record?.value.deleting).toBe(true);
  });
});

const never = (): never => {
  throw new Error('there should be one');
};

it('answers for its health, and for nothing else', async () => {
  const world = newWorld();
  const handler = makeHandler({
    ...partsOf(world),
    metrics: noMetrics,
    namespaces: ['*'],
  });
  const get = (method: string, path: string) =>
    handler({ method, path, query: new URLSearchParams(), headers: {}, body: new Uint8Array() });
  expect(await get('GET', '/health')).toMatchObject({ status: 200 });
  expect(await get('GET', '/')).toMatchObject({ status: 405 });
  expect(await get('POST', '/other')).toMatchObject({ status: 404 });
});

const deferred = () => {
  const { promise, resolve } = Promise.withResolvers<string>();
  return { work: () => promise, resolve };
};

describe('lanes', () => {
  it('never run two for one key at once, and let those that wait share the next run', async () => {
    const lanes = makeLanes<string>();
    const first = deferred();
    const ran: string[] = [];
    const second = async () => {
      ran.push('second');
      return 'second';
    };
    const one = lanes.enter('a', first.work);
    const waiting = [lanes.enter('a', second), lanes.enter('a', second)];
    expect(ran).toEqual([]);
    expect(await lanes.enter('b', async () => 'other key')).toBe('other key');
    first.resolve('first');
    expect(await one).toBe('first');
    expect(await Promise.all(waiting)).toEqual(['second', 'second']);
    expect(ran).toEqual(['second']);
  });

  it('are forgotten when their work has ended, well or not', async () => {
    const lanes = makeLanes<string>();
    await lanes.enter('a', async () => 'done');
    await expect(lanes.enter('b', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(lanes.size()).toBe(0);
  });
});

describe('configuration', () => {
  it('names every problem at once', () => {
    expect(() =>
      parseConfig(configSchema, { PROVIDERS: 'gcp,aws', ALLOW_PRIVATE_ENDPOINTS: 'perhaps' }),
    ).toThrow(
      /GOOGLE_CLOUD_PROJECT[\s\S]*INSTALLATION_ID[\s\S]*PROXY_NAMESPACES[\s\S]*PROVIDERS: may only name gcp, kubernetes/,
    );
  });

  it('needs an identity (B2), a project and namespaces, and has a default for the rest', () => {
    const config = parseConfig(configSchema, {
      GOOGLE_CLOUD_PROJECT: 'project',
      INSTALLATION_ID: 'prod',
      PROXY_NAMESPACES: 'crawlers',
    });
    expect(config).toMatchObject({ PROVIDERS: ['gcp'], ALLOW_PRIVATE_ENDPOINTS: false });
  });
});
