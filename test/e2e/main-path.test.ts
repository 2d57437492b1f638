import { randomBytes } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';

import { acquire, fetchThrough, release, type CrawlerLease } from '#test/stack/crawl.ts';

import { documentsOf, everythingSaid, lineOf, linesOf, openTap, type Said, type Tap } from './output.ts';
import { applySecret, condition, gcpSpec, poll, startWorld, type World } from './world.ts';

let world: World;
let tap: Tap;

/** What no output may hold, in plain or as a header carries it. */
const MARK = randomBytes(8).toString('hex');
const CREDENTIALS = { username: `user-${MARK}`, password: `word-${MARK}` };
const CRAWLERS = randomBytes(16).toString('hex');
const BASIC = Buffer.from(`${CREDENTIALS.username}:${CREDENTIALS.password}`).toString('base64');
const spec = (more: Readonly<Record<string, unknown>> = {}) =>
  gcpSpec({
    cloudInit: { secretRef: { name: 'cloud-init', key: 'user-data' } },
    credentialsSecretRef: { name: 'credentials' },
    ...more,
  });
const leaksIn = (said: readonly Said[]): readonly string[] =>
  said.filter(({ text }) => text.includes(MARK) || text.includes(BASIC)).map(({ where }) => where);

beforeAll(async () => {
  world = await startWorld('main-path');
  tap = await openTap();
  await applySecret(world, 'credentials', CREDENTIALS, ['credentials']);
  await applySecret(world, 'cloud-init', { 'user-data': `#cloud-config ${MARK}` }, ['cloud-init']);
  await applySecret(world, 'unlabelled', CREDENTIALS, []);
});
afterAll(async () => {
  await tap.close();
  await world.stack.stop();
});

const TRACE = 'logging.googleapis.com/trace';
const SPAN = 'logging.googleapis.com/spanId';

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
    await world.apply('retail-1', spec(), { pool: 'retail' });
    const proxy = await world.ready('retail-1');
    const lease = await leaseOn('retail-1');
    expect(lease.host).toBe(proxy.status.host);
    const page = await fetchThrough(lease, world.stack.cloud.target.url);
    expect(page).toMatchObject({ status: 200 });
    expect(page.body).toContain(lease.host);
    await release(world.discoveryUrl, lease);
  });

  test('one trace leads from the watcher’s nudge over the first probe to the pass that sets Ready', async () => {
    const { metadata } = await world.ready('retail-1');
    const nudged = await lineOf(world, 'watcher', 'nudged', metadata.uid);
    const ready = await lineOf(world, 'provision', 'Ready: ', metadata.uid);
    const trace = nudged[TRACE];
    expect(trace).toMatch(/^projects\/local-egress\/traces\/[0-9a-f]{32}$/u);
    expect(ready[TRACE]).toBe(trace);
    expect(ready[SPAN]).not.toBe(nudged[SPAN]);
    const probed = (await linesOf(world, 'health')).filter((line) => line[TRACE] === trace);
    expect(probed).not.toEqual([]);
    const before = (await linesOf(world, 'provision')).filter(({ message }) => message !== 'metric');
    const ofThis = before
      .slice(
        0,
        before.findIndex((line) => line[SPAN] === ready[SPAN]),
      )
      .filter((line) => line['uid'] === metadata.uid);
    expect(ofThis.length).toBeGreaterThan(2);
    expect(ofThis.filter((line) => line[TRACE] !== trace || line[SPAN] === undefined)).toEqual([]);
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
    await world.apply('retail-1', spec({ port: 3129 }), { pool: 'retail' });
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

  test('no credentials and no cloud-init in any log, answer, document, message, status or Event (row 66)', async () => {
    await world.apply('refused-1', spec({ credentialsSecretRef: { name: 'unlabelled' } }));
    await world.until('refused-1', 'is refused', (proxy) => condition(proxy, 'Provisioned', 'False'));
    const lease = await leaseOn('retail-1');
    expect(lease).toMatchObject(CREDENTIALS);
    const report = {
      method: 'POST',
      headers: { 'content-type': 'application/json', traceparent: `00-${CRAWLERS}-${'1'.repeat(16)}-01` },
      body: '{"outcome":"failed"}',
    };
    expect((await fetch(`${world.discoveryUrl}/v1/leases/${lease.leaseId}/report`, report)).status).toBe(202);
    // Whoever complains finds what came of it in the trace of the complaint.
    await poll('the report asks for a probe', () =>
      tap.messages.find(({ text }) => text.includes('report') && text.includes(CRAWLERS)),
    );
    const refused = await fetchThrough({ ...lease, password: MARK }, world.stack.cloud.target.url);
    expect(refused.status).toBe(407);
    const said = await everythingSaid(world, tap, [lease.leaseId]);
    // Where they belong they are found, and everything was looked at.
    expect(leaksIn(await documentsOf('credentials'))).not.toEqual([]);
    for (const part of [
      'log watcher.log',
      'log provision.log',
      'log health.log',
      'log discovery.log',
      'log gc.log',
    ])
      expect(said.find(({ where }) => where === part)?.text).toBeTruthy();
    for (const kind of [
      'Firestore (default) proxies/',
      'message of proxy-changes',
      'message of proxy-probes',
      'cluster ',
    ])
      expect(said.some(({ where }) => where.startsWith(kind))).toBe(true);
    expect(leaksIn(said)).toEqual([]);
    await release(world.discoveryUrl, lease);
    await world.remove('refused-1');
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

  test('nor is there any after replacement and deletion', async () => {
    expect(leaksIn(await everythingSaid(world, tap))).toEqual([]);
    expect(await documentsOf('credentials')).toEqual([]);
  });
});
