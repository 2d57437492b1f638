import { randomUUID } from 'node:crypto';

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { minuteOf } from '../../../functions/gc/leftovers.ts';
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

beforeEach(async () => {
  project = await startProject();
  prod = await openInstallation(project, 'prod');
  project.compute.control.addFault({ kind: 'keptDisk' });
});

afterEach(async () => {
  await prod.close();
  await project.stop();
});

const disks = (): readonly string[] =>
  project.compute.control
    .disks()
    .map(({ name }) => name)
    .toSorted();
const lists = (): number => project.compute.control.countCalls({ method: 'disks.aggregatedList' });
const deletions = (): readonly (string | undefined)[] =>
  project.compute.control.calls({ method: 'disks.delete' }).map(({ name }) => name);

/** A machine that somebody deletes by hand, and whose boot disk stays. */
const leftBy = async (owner: Installation, uid: string, zone = ZONE): Promise<string> => {
  const name = await owner.machine(uid, zone);
  await project.compute.control.vanish(name);
  return name;
};

/** The run of the hour that looks at disks, and what follows while there is something to watch. */
const hour = async (owner: Installation): Promise<void> => {
  owner.advance(MIN_AGE_MS);
  owner.advanceToMinute(minuteOf(owner.id));
  for (let round = 0; round < 3; round += 1) {
    expect(await owner.gc()).toMatchObject({ status: 200 });
    owner.advance(SIGHTING_GAP_MS);
  }
};

/** A disk of ours by its name only. */
const unlabelled = async (name: string): Promise<void> => {
  const url = `${project.compute.url}/compute/v1/projects/${project.projectId}/zones/${ZONE}/instances`;
  const sourceImage = 'projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64';
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      name,
      machineType: `zones/${ZONE}/machineTypes/e2-micro`,
      disks: [{ boot: true, autoDelete: true, initializeParams: { sourceImage } }],
      networkInterfaces: [{}],
    }),
  });
  expect(answer.status).toBe(200);
  await expect
    .poll(() => project.compute.control.instances(), { timeout: 10_000 })
    .toContainEqual(expect.objectContaining({ name, status: 'RUNNING' }));
  await project.compute.control.vanish(name);
};

describe('the boot disk', () => {
  test('of an orphan that gc deleted goes as well, within minutes, and then disks are not listed any more', async () => {
    await prod.machine(randomUUID());
    prod.advance(MIN_AGE_MS);
    // Any minute but that of the hour, so that nothing but the deletion leads to the disk.
    prod.advanceToMinute((minuteOf('prod') + 20) % 60);
    await prod.gc();
    prod.advance(SIGHTING_GAP_MS);
    await prod.gc();
    expect(lists()).toBe(0);
    await expect.poll(() => project.compute.control.instances(), { timeout: 10_000 }).toEqual([]);
    expect(disks()).toHaveLength(1);
    for (let round = 0; round < 6; round += 1) {
      prod.advance(SIGHTING_GAP_MS);
      expect((await prod.gc()).status).toBe(200);
    }
    await expect.poll(disks, { timeout: 10_000 }).toEqual([]);
    const before = lists();
    await prod.gc();
    expect(lists()).toBe(before);
  });

  test('of a Proxy and a record that are gone is found within the hour; every other one stays (B2, row 79)', async () => {
    const stage = await openInstallation(project, 'prod2');
    const orphan = await leftBy(prod, randomUUID());
    const others = [
      await leftBy(prod, await prod.proxy('its-machine-is-gone')),
      await prod.machine(await prod.proxy('in-use')),
      await leftBy(stage, randomUUID()),
    ];
    await unlabelled('prod-of-somebody');
    await hour(prod);
    const kept = [...others, 'prod-of-somebody'].toSorted();
    await expect.poll(disks, { timeout: 10_000 }).toEqual(kept);
    expect(deletions()).toEqual([orphan]);
    await hour(stage);
    await expect.poll(disks, { timeout: 10_000 }).toHaveLength(kept.length - 1);
    expect(disks()).not.toContain(others[2]);
    await stage.close();
  });

  test('in a zone that is out of reach stays until it can be seen (row 47)', async () => {
    const hidden = await leftBy(prod, randomUUID(), OTHER_ZONE);
    prod.advance(MIN_AGE_MS);
    prod.advanceToMinute(minuteOf('prod'));
    await prod.gc();
    prod.advance(SIGHTING_GAP_MS);
    const fault = project.compute.control.addFault({ kind: 'unreachableZone', zone: OTHER_ZONE });
    expect(await prod.gc()).toMatchObject({ status: 200, body: { leftovers: {} } });
    expect(disks()).toEqual([hidden]);
    project.compute.control.removeFault(fault);
    expect(await prod.gc()).toMatchObject({ body: { leftovers: { Orphan: 1 } } });
    await expect.poll(disks, { timeout: 10_000 }).toEqual([]);
  });

  test('stays when the list of disks is refused, which the answer says, and a plan shows it (row 48)', async () => {
    const name = await leftBy(prod, randomUUID());
    prod.advance(MIN_AGE_MS);
    prod.advanceToMinute(minuteOf('prod'));
    await prod.gc();
    prod.advance(SIGHTING_GAP_MS);
    project.compute.control.addFault({
      kind: 'status',
      statuses: [403],
      method: 'disks.aggregatedList',
      count: 1,
    });
    const refused = await prod.gc();
    expect(refused.status).toBe(503);
    expect(JSON.stringify(refused.body)).toContain('left behind could not be listed');
    const plan = await prod.gc('dryRun=true');
    expect(plan.body).toMatchObject({ deletions: [{ kind: 'leftover', name }] });
    expect(disks()).toEqual([name]);
  });
});
