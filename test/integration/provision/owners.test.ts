import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';

import type { HandlerParts } from '../../../functions/provision/handler.ts';
import { openStores } from '../../../functions/provision/wiring.ts';
import type { MachineProvider } from '#shared/domain/machine.ts';
import { closeFirestore, openFirestore } from '#shared/firestore/client.ts';

import { mergePatch, proxyPath } from '../proxies.ts';
import { cloudOf } from './cloud.ts';
import { startProvision, type Provision } from './fixture.ts';

let provision: Provision;
let cloud: ReturnType<typeof cloudOf>;
let db: ReturnType<typeof openFirestore>;
let renamed: MachineProvider;

beforeAll(async () => {
  provision = await startProvision();
  cloud = cloudOf(provision);
  db = openFirestore({ projectId: provision.compute.projectId });
  renamed = provision.compute.provider('renamed');
});
afterEach(() => remember(undefined));
afterAll(async () => {
  await closeFirestore(db);
  await provision.stop();
});

/** As gc would, of another cluster. */
const remember = async (clusterId: string | undefined): Promise<void> => {
  const document = db.collection('installations').doc('prod');
  await (clusterId === undefined ? document.delete() : document.set({ clusterId }));
};

const path = (name: string): string => proxyPath(provision.namespace, name);

test('B2: a cluster that is not the remembered one closes no record; after the hand-over it does', async () => {
  const name = await cloud.ready();
  const machine = await cloud.machineOf(name);
  await mergePatch(path(name), { metadata: { finalizers: null } });
  await provision.remove(name);
  await remember('where the Proxy lives');
  expect(await provision.nudge(name)).toMatchObject({ status: 204 });
  expect((await provision.record(name))?.gone).toBe(false);
  expect((await provision.record(name))?.serving).toBeDefined();
  expect(provision.lines.join('')).toContain('another cluster answered');
  // What gc's answer says to do when the move is for good.
  await remember(undefined);
  await provision.nudge(name);
  expect((await provision.record(name))?.gone).toBe(true);
  expect((await cloud.machineOf(name)).name).toBe(machine.name);
});

const handOver = async (name: string): Promise<void> => {
  expect((await mergePatch(`${path(name)}/status`, { status: { installation: null } })).status).toBe(200);
};

/** The same functions under their new name, with the database from before or with one of their own. */
const underNewName = (stores: Partial<HandlerParts> = {}): Partial<HandlerParts> => ({
  installation: 'renamed',
  providers: { gcp: renamed },
  ...stores,
});

/** By label, as an operator finds machines of an installation that runs no more. */
const machinesLabelled = async (installation: string, uid: string | undefined): Promise<unknown> => {
  const { standIn, projectId } = provision.compute;
  const filter = `labels.egress-installation="${installation}" AND labels.egress-proxy-uid="${uid}"`;
  const url = `${standIn.url}/compute/v1/projects/${projectId}/zones/europe-west1-b/instances`;
  return (await fetch(`${url}?filter=${encodeURIComponent(filter)}`)).json();
};

const uidOf = async (name: string) => (await provision.get(name))?.metadata.uid;

const writes = (): number =>
  cloud.control.countCalls({ method: 'instances.insert' }) +
  cloud.control.countCalls({ method: 'instances.delete' });

describe('an installation that was renamed', () => {
  test('B2: touches nothing of the old one, its deletion included, until the Proxy is handed over', async () => {
    const name = await cloud.ready();
    const [before, record] = [await provision.get(name), await provision.record(name)];
    const [machine, calls] = [await cloud.machineOf(name), writes()];
    expect(await provision.nudge(name, underNewName())).toMatchObject({ status: 204 });
    await provision.remove(name);
    expect(await provision.nudge(name, underNewName())).toMatchObject({ status: 204 });
    expect(writes()).toBe(calls);
    expect((await provision.get(name))?.status).toEqual(before?.status);
    expect(await provision.record(name)).toEqual(record);
    expect(await cloud.machineOf(name)).toEqual(machine);
  });

  test('B2: with its database from before replaces the old machine after the hand-over and a new revision', async () => {
    const name = await cloud.ready();
    const old = await cloud.machineOf(name);
    await handOver(name);
    await provision.nudge(name, underNewName());
    expect(await cloud.machineOf(name)).toEqual(old);
    await provision.edit(name, { revision: '2' });
    await provision.nudge(name, underNewName());
    await provision.judge(name, 'Healthy');
    await provision.nudge(name, underNewName());
    expect((await cloud.machineOf(name)).name).toMatch(/^renamed-/);
    expect((await provision.get(name))?.status?.installation).toBe('renamed');
  });

  test('B2: with a new database makes a machine after the hand-over; the old one is found by its label', async () => {
    const name = await cloud.ready();
    const old = await cloud.machineOf(name);
    const uid = await uidOf(name);
    await handOver(name);
    const stores = openStores({
      projectId: `${provision.compute.projectId}new`,
      databaseId: '(default)',
      credentialsDatabaseId: 'credentials',
    });
    await provision.nudge(name, underNewName(stores));
    await stores.close();
    expect((await provision.get(name))?.status?.providerID).toContain('/renamed-');
    expect(await machinesLabelled('prod', uid)).toMatchObject({ items: [{ name: old.name }] });
    expect(cloud.deletes(old.name)).toBe(0);
  });
});
