import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';

import { acquire, fetchThrough, release, type CrawlerLease } from '#test/stack/crawl.ts';

import { gcpSpec, poll, startWorld, type World } from './world.ts';

let world: World;

beforeAll(async () => {
  world = await startWorld('main-path');
});
afterAll(async () => {
  await world.stack.stop();
});

const listSchema = z.object({
  items: z.array(z.object({ proxy: z.object({ name: z.string() }), host: z.string(), port: z.number() })),
});

const listed = async (): Promise<z.infer<typeof listSchema>['items']> => {
  const answer = await fetch(`${world.discoveryUrl}/v1/proxies`);
  return listSchema.parse(await answer.json()).items;
};

const leaseOn = (name: string): Promise<CrawlerLease> =>
  acquire(world.discoveryUrl, { holder: 'e2e', proxy: { namespace: world.namespace, name } });

const machinesOf = (uid: string) =>
  world.stack.cloud.compute.control.instances().filter(({ labels }) => labels['egress-proxy-uid'] === uid);

describe('the main path: apply, lease, fetch, replace, delete', () => {
  test('K7: a gcp Proxy becomes Ready and a page comes through its lease', async () => {
    await world.apply('retail-1', gcpSpec(), { pool: 'retail' });
    const proxy = await world.ready('retail-1');
    const lease = await leaseOn('retail-1');
    expect(lease.host).toBe(proxy.status.host);
    const page = await fetchThrough(lease, world.stack.cloud.target.url);
    expect(page).toMatchObject({ status: 200 });
    expect(page.body).toContain(lease.host);
    await release(world.discoveryUrl, lease);
  });

  test('K7: an External Proxy becomes Ready and a page comes through its lease', async () => {
    const { host, port } = world.stack.cloud.externalProxy;
    await world.apply('partner-1', { maxLeases: 5, endpoint: { host, port } });
    await world.ready('partner-1');
    const lease = await leaseOn('partner-1');
    const page = await fetchThrough(lease, world.stack.cloud.target.url);
    expect(page.body).toContain(host);
    await release(world.discoveryUrl, lease);
  });

  test('B1: a replacement lists no address that does not answer, at no moment', async () => {
    const before = await world.ready('retail-1');
    const stray: string[] = [];
    const converged = new AbortController();
    const watch = async (): Promise<void> => {
      while (!converged.signal.aborted) {
        for (const { proxy, host, port } of await listed()) {
          const answers = world.stack.cloud.compute.control
            .instances()
            .some((one) => one.address === host && one.port === port && one.listening);
          if (proxy.name === 'retail-1' && !answers) stray.push(`${host}:${port}`);
        }
      }
    };
    const watched = watch();
    await world.apply('retail-1', gcpSpec({ port: 3129 }), { pool: 'retail' });
    const after = await world.ready('retail-1');
    await poll('the old machine is gone', () =>
      machinesOf(after.metadata.uid).length === 1 ? true : undefined,
    );
    converged.abort();
    await watched;
    expect(stray).toEqual([]);
    expect(after.status.port).toBe(3129);
    expect(after.status.providerID).not.toBe(before.status.providerID);
    expect(after.status.observedGeneration).toBe(after.metadata.generation);
  });

  test('K4: an immutable field is refused with a message that says what to do', async () => {
    const { host, port } = world.stack.cloud.externalProxy;
    const refusal = await world.tryApply('partner-1', gcpSpec({ endpoint: { host, port } }));
    expect(refusal).toContain('provider is immutable');
  });

  test('64 clients get exactly the 5 leases there are, and a released one again', async () => {
    const attempts = await Promise.allSettled(Array.from({ length: 64 }, () => leaseOn('retail-1')));
    const granted = attempts.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    const refused = attempts.flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : []));
    expect(granted).toHaveLength(5);
    expect(refused.filter((why) => why.includes('503') && why.includes('NoneAvailable'))).toHaveLength(59);
    expect(new Set(granted.map(({ fencingToken }) => fencingToken)).size).toBe(5);
    const [first] = granted;
    if (!first) throw new Error('nothing was granted');
    await release(world.discoveryUrl, first);
    const again = await leaseOn('retail-1');
    expect(again.fencingToken).toBeGreaterThan(Math.max(...granted.map(({ fencingToken }) => fencingToken)));
    await Promise.all([...granted.slice(1), again].map((lease) => release(world.discoveryUrl, lease)));
  });

  test('W1: deletion ends the machine and then the Proxy', async () => {
    const { metadata } = await world.ready('retail-1');
    await world.remove('retail-1');
    await world.until('retail-1', 'is gone', (proxy) => proxy === undefined);
    expect(machinesOf(metadata.uid)).toEqual([]);
    expect((await listed()).filter(({ proxy }) => proxy.name === 'retail-1')).toEqual([]);
    const deletes = world.stack.cloud.compute.control.calls({ method: 'instances.delete' });
    expect(new Set(deletes.map(({ name }) => name)).size).toBe(deletes.length);
  });

  test('an External Proxy is deleted without any cloud call', async () => {
    const before = world.stack.cloud.compute.control.countCalls({ method: 'instances.delete' });
    await world.remove('partner-1');
    await world.until('partner-1', 'is gone', (proxy) => proxy === undefined);
    expect(world.stack.cloud.compute.control.countCalls({ method: 'instances.delete' })).toBe(before);
  });
});
