import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';

import { gcpSpec, poll, startWorld, type World } from './world.ts';

let world: World;
const names = ['one', 'two', 'three'] as const;
const spec = gcpSpec({ healthCheck: { timeoutSeconds: 5, failureThreshold: 2 } });

beforeAll(async () => {
  world = await startWorld('health', { scheduled: false });
  await Promise.all(names.map((name) => world.apply(name, spec)));
  await Promise.all(names.map((name) => world.ready(name)));
});
afterAll(async () => {
  await world.stack.stop();
});

const listSchema = z.object({ items: z.array(z.object({ proxy: z.object({ name: z.string() }) })) });
const listed = async (): Promise<readonly string[]> => {
  const answer = await fetch(`${world.discoveryUrl}/v1/proxies`);
  return listSchema
    .parse(await answer.json())
    .items.map(({ proxy }) => proxy.name)
    .toSorted();
};

const roundSchema = z.looseObject({
  kind: z.string(),
  conclusion: z.looseObject({ kind: z.string(), why: z.string().optional() }).optional(),
});
/** What a scheduled round would do, now. */
const round = async () => {
  const answer = await fetch(`${world.stack.deployments.urls.health}/`, { method: 'POST' });
  return roundSchema.parse(await answer.json());
};

const machineOf = async (name: string): Promise<string> => {
  const { metadata } = await world.ready(name);
  const machine = world.stack.cloud.compute.control
    .instances()
    .find(({ labels }) => labels['egress-proxy-uid'] === metadata.uid);
  if (!machine) throw new Error(`${name} has no machine`);
  return machine.name;
};
const healthyIs = (status: string) => (proxy: Awaited<ReturnType<World['get']>>) =>
  proxy?.status.conditions.some((one) => one.type === 'Healthy' && one.status === status) ?? false;

describe('health on the local stack', () => {
  test('K7: a proxy whose process dies leaves the list within its thresholds, its neighbours untouched; back, it recovers', async () => {
    const { control } = world.stack.cloud.compute;
    const neighbours = await Promise.all(['two', 'three'].map((name) => world.get(name)));
    const machine = await machineOf('one');
    await poll('all are listed', async () => ((await listed()).length === 3 ? true : undefined));
    await control.setProxyMode(machine, { kind: 'refuse' });
    expect(await round()).toMatchObject({ kind: 'done', changes: 1, outcomes: { Ok: 2, ConnectRefused: 1 } });
    expect(await listed()).toEqual(['three', 'two']);
    const shown = await world.until('one', 'is shown unhealthy', healthyIs('False'));
    expect(shown?.status.conditions.find(({ type }) => type === 'Healthy')?.message).toContain(
      'ConnectRefused',
    );
    expect(await Promise.all(['two', 'three'].map((name) => world.get(name)))).toEqual(neighbours);
    await control.setProxyMode(machine, { kind: 'ok' });
    expect(await round()).toMatchObject({ kind: 'done', changes: 1 });
    await poll('all are listed again', async () => ((await listed()).length === 3 ? true : undefined));
    await world.until('one', 'is shown healthy', healthyIs('True'));
  });

  test('row 64: without its probe target nothing leaves the list; with it back, the dead are found out and all recovers', async () => {
    const { control } = world.stack.cloud.compute;
    const { echo } = world.stack.deployments.instances;
    const machine = await machineOf('one');
    await control.setProxyMode(machine, { kind: 'refuse' });
    process.kill(echo.pid(), 'SIGSTOP');
    try {
      expect(await round()).toMatchObject({ changes: 0, conclusion: { why: 'ControlFailed' } });
      expect(await listed()).toEqual(['one', 'three', 'two']);
    } finally {
      process.kill(echo.pid(), 'SIGCONT');
    }
    expect(await round()).toMatchObject({ changes: 1, conclusion: { kind: 'conclusive' } });
    expect(await listed()).toEqual(['three', 'two']);
    await control.setProxyMode(machine, { kind: 'ok' });
    expect(await round()).toMatchObject({ changes: 1 });
    await poll('all are listed again', async () => ((await listed()).length === 3 ? true : undefined));
  });
});
