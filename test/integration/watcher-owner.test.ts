import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';

import { call, mergePatch, proxyPath } from './proxies.ts';
import { INSTALLATION, openStage, type Stage } from './watcher/stage.ts';

const PATIENCE = { timeout: 30_000, interval: 100 };

let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
});
afterAll(() => stage.close());

const setOwner = (name: string, installation: string | null) =>
  mergePatch(`${proxyPath(stage.namespace, name)}/status`, { status: { installation } });

const eventsOf = async (name: string): Promise<unknown> => {
  const path = `/api/v1/namespaces/${stage.namespace}/events?fieldSelector=involvedObject.name=${name}`;
  return (await call(path)).body;
};

describe('a Proxy whose status was made to name another installation', () => {
  test('gets an Event that says what to do, and is handed over when that is done (B2)', async () => {
    const { name } = (await stage.create()).metadata;
    await stage.dealWith(name);
    await stage.withWatcher(async () => {
      await setOwner(name, 'another');
      await vi.waitFor(async () => {
        const events = JSON.stringify(await eventsOf(name));
        expect(events).toContain('"reason":"OtherInstallation"');
        expect(events).toContain(`installation ${INSTALLATION}, which has this namespace`);
      }, PATIENCE);
      await stage.edit(name, { spec: { maxLeases: 7 } });
      await stage.caughtUp();
      expect(stage.reasons(name)).toEqual([]);
      await setOwner(name, null);
      await stage.forwarded(name, 'SpecChanged, NotOwned');
      await stage.dealWith(name);
      await stage.caughtUp();
      expect(stage.reasons(name)).toHaveLength(1);
    });
  });

  test('that covers everything else is forwarded once its owner is taken out', async () => {
    const { name } = (await stage.create()).metadata;
    await stage.dealWith(name);
    await setOwner(name, 'another');
    await stage.withWatcher(async () => {
      await setOwner(name, null);
      await stage.forwarded(name, 'NotOwned');
      await stage.caughtUp();
      expect(stage.reasons(name)).toEqual(['NotOwned']);
    });
  });
});
