import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';

import { FINALIZER } from '#shared/domain/proxy.ts';

import { call } from './proxies.ts';
import { openLink, type Link } from '#test/services/link.ts';
import { QUICK, openStage, type RunningWatcher, type Stage } from './watcher/stage.ts';

const DEALT = { timeout: 30_000, interval: 50 };

let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
});
afterAll(() => stage.close());

describe('a watcher whose link to the API server fails', () => {
  let link: Link;
  beforeAll(async () => {
    link = await openLink(new URL(inject('cluster').server).host);
  });
  afterAll(() => link.close());

  const linked = (work: (watcher: RunningWatcher) => Promise<void>, times = QUICK): Promise<void> =>
    stage.withWatcher(work, { apiHost: link.host, times });

  test('row 7: publishes nothing for ten reconnects with thirty Proxies, and has one watch', async () => {
    const names: string[] = [];
    for (let n = 0; n < 30; n += 1) names.push((await stage.create()).metadata.name);
    await Promise.all(names.map((name) => stage.dealWith(name)));
    await linked(async () => {
      for (let round = 0; round < 10; round += 1) {
        const before = link.attempts();
        link.cut();
        await vi.waitUntil(() => link.attempts() >= before + 2, DEALT);
      }
      await stage.caughtUp();
      // One kept connection for requests and one for the watch, each with its two ends.
      expect(link.open()).toBeLessThanOrEqual(4);
      expect(names.flatMap((name) => stage.reasons(name))).toEqual([]);
    });
  });

  test('rows 2 and 5: forwards what was edited and what was deleted meanwhile', async () => {
    const [edited, deleted, bypassed] = [
      (await stage.create()).metadata.name,
      (await stage.create()).metadata.name,
      (await stage.create()).metadata.name,
    ];
    for (const name of [edited, deleted, bypassed]) await stage.dealWith(name);
    await linked(async () => {
      link.refuse();
      await stage.edit(edited, { spec: { maxLeases: 7 } });
      await stage.remove(deleted);
      await stage.edit(bypassed, { metadata: { finalizers: null } });
      await stage.remove(bypassed);
      link.heal();
      await stage.forwarded(edited, 'SpecChanged');
      await stage.forwarded(deleted, 'Deleting');
      await stage.forwarded(bypassed, 'Gone');
      expect((await stage.get(deleted)).metadata.finalizers).toEqual([FINALIZER]);
    });
  });

  test('row 1: notices a connection that is dead without a sign', async () => {
    const { name } = (await stage.create()).metadata;
    await stage.dealWith(name);
    await linked(async ({ lines }) => {
      await stage.caughtUp();
      link.block();
      await stage.edit(name, { spec: { maxLeases: 7 } });
      await vi.waitUntil(() => lines.some((line) => line.includes('the watch broke')), DEALT);
      link.heal();
      await stage.forwarded(name, 'SpecChanged');
      await stage.caughtUp();
      expect(stage.reasons(name)).toHaveLength(1);
    });
  });

  test('row 3: asks about once a second during an outage, and has one watch after it', async () => {
    await linked(
      async () => {
        await stage.caughtUp();
        const [before, begun] = [link.attempts(), performance.now()];
        link.refuse();
        await vi.waitUntil(() => link.attempts() >= before + 4, { timeout: 60_000, interval: 20 });
        expect((link.attempts() - before) / ((performance.now() - begun) / 1000)).toBeLessThan(1.5);
        link.heal();
        await stage.caughtUp();
        expect(link.open()).toBeLessThanOrEqual(4);
      },
      { ...QUICK, retryMinMs: 1000, retryMaxMs: 2000, timeoutSeconds: 60, silenceMs: 70_000 },
    );
  });

  test('row 4: lists again after a real 410, and forwards what it had missed', async () => {
    const { name } = (await stage.create()).metadata;
    await stage.dealWith(name);
    let expired = 0;
    await stage.withWatcher(
      async () => {
        await vi.waitUntil(() => expired === 1, DEALT);
        await stage.edit(name, { spec: { maxLeases: 7 } });
        await stage.forwarded(name, 'SpecChanged');
        await stage.caughtUp();
      },
      {
        times: QUICK,
        cluster: (cluster) => ({
          ...cluster,
          async *watchProxies(options) {
            const tooOld = expired === 0 ? { ...options, resourceVersion: '1' } : options;
            for await (const event of cluster.watchProxies(tooOld)) {
              if (event.kind === 'expired') expired += 1;
              yield event;
            }
          },
        }),
      },
    );
    expect(expired).toBe(1);
    expect(stage.reasons(name)).toEqual(['SpecChanged']);
  });
});

describe('a watcher whose link to Pub/Sub fails', () => {
  test('row 13: keeps trying, warns on the Proxy, and forwards its last state once', async () => {
    const link = await openLink(inject('emulators').pubsub);
    const { name } = (await stage.create()).metadata;
    await stage.dealWith(name);
    try {
      await stage.withWatcher(
        async () => {
          link.refuse();
          await stage.edit(name, { spec: { maxLeases: 7 } });
          const events = `/api/v1/namespaces/${stage.namespace}/events?fieldSelector=involvedObject.name=${name}`;
          await vi.waitFor(
            async () =>
              expect((await call(events)).body).toMatchObject({
                items: [{ type: 'Warning', reason: 'PublishFailed', involvedObject: { name } }],
              }),
            { timeout: 50_000, interval: 200 },
          );
          await stage.edit(name, { spec: { maxLeases: 8 } });
          link.heal();
          await stage.forwarded(name, 'SpecChanged');
          await stage.caughtUp();
          expect(stage.reasons(name)).toEqual(['SpecChanged']);
        },
        { pubsubHost: link.host },
      );
    } finally {
      await link.close();
    }
  }, 120_000);
});
