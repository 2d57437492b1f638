import { randomUUID } from 'node:crypto';

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { DEFAULT_HEALTH_CHECK } from '#shared/domain/proxy.ts';
import type { ProxyRecord } from '#shared/domain/record.ts';
import { closeFirestore, openFirestore } from '#shared/firestore/client.ts';
import { FINALIZER } from '#shared/domain/proxy.ts';
import { callApi } from '#test/services/api.ts';

import { api, proxyPath } from '../proxies.ts';
import {
  MIN_AGE_MS,
  OTHER_ZONE,
  SIGHTING_GAP_MS,
  ZONE,
  openInstallation,
  startProject,
  type Installation,
  type SharedProject,
} from './installations.ts';

let project: SharedProject;
let prod: Installation;
let stage: Installation;

beforeEach(async () => {
  project = await startProject();
  prod = await openInstallation(project, 'prod');
  stage = await openInstallation(project, 'prod2');
});

afterEach(async () => {
  await Promise.all([prod.close(), stage.close()]);
  await project.stop();
});

const names = (): readonly string[] => project.compute.control.instances().map(({ name }) => name);

/** Everything that this project keeps in Firestore, by path. */
const documents = async (): Promise<Readonly<Record<string, unknown>>> => {
  const db = openFirestore({ projectId: project.projectId });
  const collections = await db.listCollections();
  const snapshots = await Promise.all(collections.map((collection) => collection.get()));
  await closeFirestore(db);
  return Object.fromEntries(snapshots.flatMap(({ docs }) => docs.map((doc) => [doc.ref.path, doc.data()])));
};

const tombstone = (uid: string, name: string, { id, namespace }: Installation): ProxyRecord => ({
  ref: { namespace, name, uid },
  installation: id,
  provider: 'gcp',
  generation: 1,
  labels: {},
  maxLeases: 1,
  cordoned: false,
  deleting: false,
  drainTimeoutSeconds: 300,
  healthCheck: DEFAULT_HEALTH_CHECK,
  draining: [],
  machines: [],
  incarnation: 1,
  gone: true,
});

/** Runs until everything that may go has been seen twice, an age apart. */
const rounds = async (installation: Installation, count = 4): Promise<void> => {
  installation.advance(MIN_AGE_MS);
  for (let round = 0; round < count; round += 1) {
    const reply = await installation.gc();
    expect(reply).toMatchObject({ status: 200 });
    installation.advance(SIGHTING_GAP_MS);
  }
};

describe('gc on real parts', () => {
  test('two installations in one project, with equally named Proxies, never touch each other (B2, row 79)', async () => {
    const kept: string[] = [];
    for (const installation of [prod, stage]) {
      for (const name of ['retail-eu-1', 'retail-eu-2']) {
        kept.push(await installation.machine(await installation.proxy(name)));
      }
    }
    await prod.machine(randomUUID());
    const foreign = await stage.machine(randomUUID());
    await rounds(prod);
    expect(names().toSorted()).toEqual([...kept, foreign].toSorted());
    await rounds(stage);
    expect(names().toSorted()).toEqual(kept.toSorted());
  });

  test('an orphan goes only after its minimum age and at the second sighting (K6, row 81)', async () => {
    const orphan = await prod.machine(randomUUID());
    await prod.gc();
    prod.advance(MIN_AGE_MS);
    await prod.gc();
    prod.advance(SIGHTING_GAP_MS - 5000);
    await prod.gc();
    expect(names()).toEqual([orphan]);
    prod.advance(5000);
    await prod.gc();
    await expect.poll(names, { timeout: 10_000 }).toEqual([]);
    expect(project.compute.control.countCalls({ method: 'instances.delete' })).toBe(1);
  });

  test('a machine whose Proxy is there stays, and provision is nudged when it has no record', async () => {
    const uid = await prod.proxy('retail-eu-1');
    const machine = await prod.machine(uid);
    await rounds(prod);
    expect(names()).toEqual([machine]);
    expect(prod.nudges).toContainEqual({
      namespace: prod.namespace,
      name: 'retail-eu-1',
      uid,
      reason: 'NoRecord',
    });
  });

  test('once its Proxy is deleted without us, the machine goes (K6)', async () => {
    const uid = await prod.proxy('retail-eu-1');
    await prod.machine(uid);
    await prod.records.create(tombstone(uid, 'retail-eu-1', prod));
    await prod.gc();
    await prod.removeProxy('retail-eu-1');
    await rounds(prod);
    await expect.poll(names, { timeout: 10_000 }).toEqual([]);
  });

  test('of overlapping runs only one deletes: the other steps aside (K5)', async () => {
    const orphan = await prod.machine(randomUUID());
    prod.advance(MIN_AGE_MS);
    await prod.gc();
    prod.advance(SIGHTING_GAP_MS);
    // The first run is held up in its live read, so that the others come while it has the lock.
    project.compute.control.addFault({ kind: 'slowResponse', ms: 2000, method: 'instances.get', count: 1 });
    const replies = await Promise.all([prod.gc(), prod.gc(), prod.gc()]);
    const bodies = replies.map(({ body }) => JSON.stringify(body));
    expect(bodies.filter((body) => body.includes('"outcome":"deleted"'))).toHaveLength(1);
    expect(bodies.filter((body) => body.includes('steppedAside'))).toHaveLength(2);
    expect(project.compute.control.countCalls({ method: 'instances.delete', name: orphan })).toBe(1);
  });

  test('an unreachable zone keeps its machines; what can be seen goes (row 47)', async () => {
    await prod.machine(randomUUID(), ZONE);
    const hidden = await prod.machine(randomUUID(), OTHER_ZONE);
    prod.advance(MIN_AGE_MS);
    await prod.gc();
    prod.advance(SIGHTING_GAP_MS);
    const fault = project.compute.control.addFault({ kind: 'unreachableZone', zone: OTHER_ZONE });
    await rounds(prod, 2);
    await expect.poll(names, { timeout: 10_000 }).toEqual([hidden]);
    project.compute.control.removeFault(fault);
    await rounds(prod, 2);
    await expect.poll(names, { timeout: 10_000 }).toEqual([]);
  });

  test('a list that is refused deletes nothing and answers 503 (rows 48, 82)', async () => {
    const orphan = await prod.machine(randomUUID());
    await prod.gc();
    prod.advance(MIN_AGE_MS + SIGHTING_GAP_MS);
    await prod.gc();
    prod.advance(SIGHTING_GAP_MS);
    project.compute.control.addFault({ kind: 'status', statuses: [400], method: 'instances.aggregatedList' });
    expect((await prod.gc()).status).toBe(503);
    expect(names()).toEqual([orphan]);
  });

  test('Proxies that may not be listed delete nothing and answer 503 (row 82)', async () => {
    const blind = await openInstallation(project, 'blind');
    await blind.machine(randomUUID());
    blind.advance(MIN_AGE_MS);
    await blind.gc();
    blind.advance(SIGHTING_GAP_MS);
    await blind.revoke();
    const reply = await blind.gc();
    expect(reply.status).toBe(503);
    expect(JSON.stringify(reply.body)).toContain('bind the roles of provision and gc for the whole cluster');
    expect(names()).toHaveLength(1);
    await blind.close();
  });

  test('row 55: a namespace that is deleted too early, its RoleBindings first, loses no machine for good', async () => {
    const own = await openInstallation(project, 'early');
    const uid = await own.proxy('retail-eu-1', [FINALIZER]);
    const machine = await own.machine(uid);
    await own.gc();
    await callApi(api(), `/api/v1/namespaces/${own.namespace}`, { method: 'DELETE' });
    await expect.poll(async () => (await own.gc()).status, { timeout: 30_000 }).toBe(503);
    own.advance(MIN_AGE_MS);
    for (let round = 0; round < 3; round += 1) {
      own.advance(SIGHTING_GAP_MS);
      expect((await own.gc()).status).toBe(503);
    }
    expect(names()).toEqual([machine]);
    // What the answer says: rights of the whole cluster, until the Proxies are gone.
    await own.bindEverywhere();
    try {
      await rounds(own, 2);
      expect(names()).toEqual([machine]);
      await callApi(api(), proxyPath(own.namespace, 'retail-eu-1'), {
        method: 'PATCH',
        body: { metadata: { finalizers: null } },
        contentType: 'application/merge-patch+json',
      });
      await rounds(own, 3);
      await expect.poll(names, { timeout: 10_000 }).toEqual([]);
    } finally {
      await own.unbindEverywhere();
      await own.close();
    }
  });

  test('a dry run shows the plan and writes nothing', async () => {
    const orphan = await prod.machine(randomUUID());
    prod.advance(MIN_AGE_MS);
    const before = await documents();
    const reply = await prod.gc('dryRun=true');
    expect(reply.body).toMatchObject({ machines: [{ name: orphan, rule: 'FirstSighting' }] });
    expect(await documents()).toEqual(before);

    await prod.gc();
    prod.advance(SIGHTING_GAP_MS);
    const seen = await documents();
    expect((await prod.gc('dryRun=true')).body).toMatchObject({ deletions: [{ name: orphan }] });
    expect(await documents()).toEqual(seen);
    expect(names()).toEqual([orphan]);
    expect(prod.nudges).toEqual([]);
  });

  test('when most of the fleet would go, a person has to confirm exactly that plan (row 82)', async () => {
    for (let n = 0; n < 4; n += 1) await prod.machine(randomUUID());
    await rounds(prod);
    expect(names()).toHaveLength(4);
    const plan = (await prod.gc('dryRun=true')).body;
    expect(plan).toMatchObject({ frozen: [{ reason: 'MostOfFleet' }] });
    expect((await prod.gc(`confirm=${'0'.repeat(64)}`)).status).toBe(409);
    expect(names()).toHaveLength(4);
    const digest = /"digest":"(?<digest>[0-9a-f]{64})"/.exec(JSON.stringify(plan))?.groups?.['digest'];
    expect((await prod.gc(`confirm=${digest}`)).status).toBe(200);
    await expect.poll(names, { timeout: 10_000 }).toEqual([]);
  });

  test('another cluster than the one that is remembered freezes deletions', async () => {
    await prod.gc();
    const db = openFirestore({ projectId: project.projectId });
    await db.collection('installations').doc('prod').set({ clusterId: 'the one before' });
    await closeFirestore(db);
    const orphan = await prod.machine(randomUUID());
    await rounds(prod);
    expect(names()).toEqual([orphan]);
    expect((await prod.gc()).body).toMatchObject({ frozen: [{ reason: 'ClusterChanged' }] });
  });

  test('sightings end with their machine, and a second run adds no writes', async () => {
    await prod.machine(randomUUID());
    await rounds(prod);
    await expect.poll(names, { timeout: 10_000 }).toEqual([]);
    // For so long it looks at what its machines may have left behind.
    prod.advance(600_000);
    await prod.gc();
    const paths = Object.keys(await documents());
    expect(paths).toEqual(['installations/prod']);
  });
});
