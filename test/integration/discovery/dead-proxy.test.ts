/** Discovery and health over one database: what crawlers report, and what comes of it. */

import { afterEach, beforeEach, expect, it } from 'vitest';

import type { ProbeMessage } from '#shared/domain/message.ts';

import { PROXY_HOST } from '../health/parts.ts';
import { deliver, startWorld, type World } from '../health/world.ts';
import { acquire, call, leaseIdOf, openFleet, type Fleet } from './fixture.ts';

let world: World;
let fleet: Fleet;

beforeEach(async () => {
  world = await startWorld();
  fleet = openFleet(world.projectId);
});
afterEach(async () => {
  await fleet.close();
  await world.close();
});

it('row 73: a proxy that dies between rounds takes no more leases once crawlers have reported it', async () => {
  const lost = await world.parts.peer((socket) => socket.destroy());
  const good = { host: PROXY_HOST, port: world.parts.open.port };
  const dead = await world.publish({ place: { host: '127.0.0.1', port: lost.port }, state: 'Healthy' });
  await world.publish({ place: good, state: 'Healthy', exitAddress: PROXY_HOST });
  const [discovery, health] = [fleet.instance(), world.start()];
  const onDead = { proxy: { namespace: dead.ref.namespace, name: dead.ref.name } };

  const useIt = async (): Promise<void> => {
    const lease = await acquire(discovery, onDead);
    expect(lease.status).toBe(201);
    const path = `/v1/leases/${leaseIdOf(lease)}`;
    const reported = await call(discovery, 'POST', `${path}/report`, { body: { outcome: 'failed' } });
    expect(reported.status).toBe(202);
    expect((await call(discovery, 'DELETE', path)).status).toBe(204);
  };
  for (let round = 0; round < 20; round += 1) await Promise.all([1, 2, 3, 4, 5].map(useIt));
  // A report condemns nobody; the probe that it asks for does.
  expect(await world.gate(dead)).toMatchObject({ open: true });
  const asked: readonly ProbeMessage[] = fleet.probes;
  expect(asked).toHaveLength(100);
  await Promise.all(asked.map((message) => deliver(health, message)));

  expect(await world.gate(dead)).toMatchObject({ open: false, closedReason: 'Unhealthy' });
  expect(await acquire(discovery, onDead)).toMatchObject({ status: 503, body: { counts: { unhealthy: 1 } } });
  expect((await acquire(discovery)).body['host']).toBe(PROXY_HOST);
  const list = await call(discovery, 'GET', '/v1/proxies');
  expect(list.body['items']).toMatchObject([{ host: PROXY_HOST }]);
});
