import { afterAll, beforeAll, expect, test } from 'vitest';

import { openInstallation, type Installation } from '../gc/installations.ts';
import { GCP } from '../proxies.ts';
import { cloudOf } from './cloud.ts';
import { condition, startProvision, type Provision } from './fixture.ts';

/** Each machine has two: an inner and an outer one. */
const ADDRESSES = 6;
const CUT_OFF = 'us-central1-a';

let provision: Provision;
let cloud: ReturnType<typeof cloudOf>;
let gc: Installation;

beforeAll(async () => {
  provision = await startProvision({ addresses: ADDRESSES });
  cloud = cloudOf(provision);
  // Loads the client library, which takes its time.
  await provision.provider.get('nobody', CUT_OFF);
  const { projectId, standIn } = provision.compute;
  gc = await openInstallation({ projectId, compute: standIn }, 'prod', { namespace: provision.namespace });
});
afterAll(async () => {
  await gc.close();
  await provision.stop();
});

const inZone = (zone: string) => ({ ...GCP, gcp: { ...GCP.gcp, zones: [zone] } });
const hostOf = async (name: string) => (await provision.record(name))?.serving?.endpoint.host;
const gateOf = async (name: string) => (await provision.documents(name))[0];

const OUTER = { accessConfigs: [{ name: 'External NAT', type: 'ONE_TO_ONE_NAT' }] };

/** Takes addresses from everybody else. */
const filler = async (name: string, networkInterface: object): Promise<string> => {
  await cloud.call('POST', 'zones/europe-west1-c/instances', {
    name,
    machineType: 'zones/europe-west1-c/machineTypes/e2-micro',
    disks: [{ boot: true, autoDelete: true, initializeParams: { sourceImage: GCP.gcp.image } }],
    networkInterfaces: [networkInterface],
  });
  await expect
    .poll(() => cloud.control.instances().find((each) => each.name === name)?.status)
    .toBe('RUNNING');
  return name;
};

test('B1: of two Proxies that record one address the older is withdrawn, although its zone does not answer, and stays so', async () => {
  const older = await cloud.ready(inZone(CUT_OFF));
  const address = await hostOf(older);
  const fault = cloud.control.addFault({ kind: 'unreachableZone', zone: CUT_OFF });
  await cloud.control.vanish((await cloud.machineOf(older)).name);
  // Those that were never used come first, then the outer one of the lost machine, as the outer one of the next.
  const fillers = [await filler('filler-1', OUTER), await filler('filler-2', {})];

  const newer = await cloud.ready(inZone('europe-west1-b'));
  expect(await hostOf(newer), 'the address was given away again').toBe(address);
  expect(await hostOf(older), 'nobody can tell yet').toBe(address);
  const { id } = (await provision.record(newer))?.serving?.endpoint ?? {};

  await gc.gc();
  const nudged = gc.nudges.filter(({ reason }) => reason === 'AddressShared').map(({ name }) => name);
  expect(nudged).toEqual([older]);
  for (const _again of [1, 2, 3]) {
    expect(await provision.nudge(older)).toMatchObject({ status: 503 });
    expect(await provision.nudge(newer)).toMatchObject({ status: 204 });
    expect(await hostOf(older)).toBeUndefined();
    expect(await gateOf(older)).toContain('"closedReason":"NoEndpoint"');
    expect((await provision.record(newer))?.serving?.endpoint.id).toBe(id);
    expect(await gateOf(newer)).toContain('"open":true');
  }
  const proxy = await provision.get(older);
  expect(proxy?.status).not.toHaveProperty('host');
  expect(condition(proxy, 'Provisioned')).toMatchObject({ status: 'False', reason: 'Conflict' });
  expect(condition(proxy, 'Provisioned')?.message).toContain(`${provision.namespace}/${newer}`);

  for (const name of fillers) await cloud.control.vanish(name);
  cloud.control.removeFault(fault);
  await provision.nudge(older);
  expect(await hostOf(older)).toBe((await cloud.machineOf(older)).address);
  expect(await hostOf(older)).not.toBe(address);
  expect(condition(await provision.get(older), 'Provisioned')?.status).toBe('True');
}, 180_000);
