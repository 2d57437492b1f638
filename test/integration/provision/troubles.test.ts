/** What people see, side by side: the texts of each kind of trouble, as `kubectl get` and `kubectl describe` show them. */

import { afterAll, beforeAll, expect, test } from 'vitest';

import type { MachineProvider } from '#shared/domain/machine.ts';
import { machineName } from '#shared/domain/names.ts';

import { startPods, type PodFixture } from '../pods/fixture.ts';
import { EXTERNAL, GCP, KUBERNETES, proxyPath } from '../proxies.ts';
import { cloudOf, columnsOf, eventsOf } from './cloud.ts';
import { secretOf, startProvision, type Provision } from './fixture.ts';

let provision: Provision;
let cloud: ReturnType<typeof cloudOf>;
let pods: PodFixture;
let kubernetes: MachineProvider;

beforeAll(async () => {
  provision = await startProvision();
  cloud = cloudOf(provision);
  pods = await startPods(provision.namespace);
  kubernetes = pods.provider('prod');
  // Loads the client library, which takes its time.
  await provision.provider.get('nobody', 'europe-west1-b');
});
afterAll(async () => {
  await pods.stop();
  await provision.stop();
});

const ZONE = 'europe-west1-b';
const INIT_LABEL = { 'crawl.example.com/cloud-init': 'true' };
const withInit = (name: string) => ({ ...GCP, cloudInit: { secretRef: { name } } });
const edit = (name: string) => provision.edit(name, { gcp: { machineType: 'e2-small' } });

const during = async (fault: Parameters<typeof cloud.control.addFault>[0], work: () => Promise<string>) => {
  const id = cloud.control.addFault(fault);
  try {
    return await work();
  } finally {
    cloud.control.removeFault(id);
  }
};

const deleted = async (name: string, parts: Parameters<Provision['nudge']>[1] = {}): Promise<string> => {
  await provision.remove(name);
  await provision.nudge(name, parts);
  return name;
};

/** A Pod that does not get beyond being created, and what people read meanwhile. */
const heldBack = async (kind: Parameters<typeof pods.kubelet.control.addFault>[0]['kind']) => {
  const fault = pods.kubelet.control.addFault({ kind });
  try {
    const name = await provision.apply(KUBERNETES);
    await provision.nudge(name, { providers: { kubernetes }, limits: { budgetMs: 3_500 } });
    return name;
  } finally {
    pods.kubelet.control.removeFault(fault);
  }
};

const TROUBLES: Readonly<Record<string, () => Promise<string>>> = {
  converged: () => cloud.ready(),
  'converged and cordoned': () => cloud.ready({ ...GCP, cordoned: true }),
  external: async () => cloud.ready(EXTERNAL),
  'made, and not probed yet': () => cloud.applied(),
  'made, and does not answer': async () => {
    const name = await cloud.applied();
    await provision.judge(name, 'Unhealthy');
    await provision.nudge(name);
    return name;
  },
  'the Secret is missing': () => cloud.applied(withInit('nowhere')),
  'the Secret has no label': async () => {
    await secretOf(provision, 'plain', { 'user-data': 'x' });
    return cloud.applied(withInit('plain'));
  },
  'the Secret has no such key': async () => {
    await secretOf(provision, 'keyless', { other: 'x' }, INIT_LABEL);
    return cloud.applied(withInit('keyless'));
  },
  'user-data is too large': async () => {
    await secretOf(provision, 'large', { 'user-data': 'x'.repeat(300_000) }, INIT_LABEL);
    return cloud.applied(withInit('large'));
  },
  'the provider is not configured': async () => {
    const name = await provision.apply(GCP);
    await provision.nudge(name, { providers: {} });
    return name;
  },
  'the endpoint is refused': () => cloud.applied({ endpoint: { host: '10.0.0.7', port: 3128 } }),
  'no zone has capacity': () => during({ kind: 'stockOut', zone: ZONE }, () => cloud.applied()),
  'the quota is used up': () => during({ kind: 'quota' }, () => cloud.applied()),
  'the spec cannot be had': () => cloud.applied({ ...GCP, gcp: { ...GCP.gcp, zones: ['nowhere-north1-a'] } }),
  'provision may not create machines': () =>
    during(
      {
        kind: 'status',
        statuses: Array.from({ length: 9 }, () => 403),
        reason: 'forbidden',
        message: "Required 'compute.instances.create' permission for 'projects/p'",
        method: 'instances.insert',
      },
      () => cloud.applied(),
    ),
  'a Pod whose image cannot be had': () => heldBack('imagePull'),
  'a Pod that no node takes': () => heldBack('unschedulable'),
  'a Pod that was evicted': async () => {
    const name = await provision.apply(KUBERNETES);
    await provision.nudge(name, { providers: { kubernetes } });
    const { machine = '' } = (await provision.record(name))?.serving ?? {};
    await pods.kubelet.control.fail(machine);
    const fault = pods.kubelet.control.addFault({ kind: 'unschedulable' });
    await provision.nudge(name, { providers: { kubernetes }, limits: { budgetMs: 3_500 } });
    pods.kubelet.control.removeFault(fault);
    return name;
  },
  'the provider cannot be asked any more': async () => {
    const name = await cloud.ready();
    const statuses = Array.from({ length: 9 }, () => 403);
    const message = "Required 'compute.instances.get' permission for 'projects/p'";
    return during(
      { kind: 'status', statuses, reason: 'forbidden', message, method: 'instances.get' },
      async () => {
        await provision.nudge(name);
        return name;
      },
    );
  },
  "somebody else's machine has the name": async () => {
    const name = await cloud.ready();
    const { ref, machines = [] } = (await provision.record(name)) ?? {};
    const taken = machineName('prod', ref?.uid ?? '', machines[0]?.hash ?? '', 2);
    await cloud.call('POST', `zones/${ZONE}/instances`, {
      name: taken,
      machineType: `zones/${ZONE}/machineTypes/e2-micro`,
      disks: [{ boot: true, autoDelete: true, initializeParams: { sourceImage: GCP.gcp.image } }],
      networkInterfaces: [{}],
    });
    await cloud.control.vanish((await cloud.machineOf(name)).name);
    await provision.nudge(name);
    return name;
  },
  'Spot machines are taken one after the other': async () => {
    const name = await cloud.ready({ ...GCP, gcp: { ...GCP.gcp, provisioningModel: 'Spot' } });
    for (const _time of [1, 2]) {
      await cloud.control.preempt((await cloud.machineOf(name)).name);
      await provision.nudge(name);
    }
    return name;
  },
  'the new machine of a replacement does not answer': async () => {
    const name = await cloud.ready();
    await edit(name);
    await provision.nudge(name);
    await provision.judge(name, 'Unhealthy');
    await provision.nudge(name);
    return name;
  },
  'a replacement that cannot be had': async () => {
    const name = await cloud.ready();
    await edit(name);
    return during({ kind: 'quota' }, async () => {
      await provision.nudge(name);
      return name;
    });
  },
  'a replacement that waits for its turn': async () => {
    const name = await cloud.ready();
    await edit(name);
    await provision.nudge(name, { maxReplacingPercent: 1 });
    return name;
  },
  'deleted, with a lease that runs': async () => {
    const name = await cloud.ready();
    await provision.lease(name, 120_000);
    return deleted(name);
  },
  'deleted, and the provider is not configured': async () => deleted(await cloud.ready(), { providers: {} }),
  'deleted, and provision may not delete machines': async () => {
    const name = await cloud.ready();
    const statuses = Array.from({ length: 9 }, () => 403);
    const message = "Required 'compute.instances.delete' permission for 'projects/p'";
    return during(
      { kind: 'status', statuses, reason: 'forbidden', message, method: 'instances.delete' },
      () => deleted(name),
    );
  },
};

/** Without what is different each time. */
const scrubbed = (text: string, name: string): string =>
  text
    .replaceAll(/prod-[0-9a-z]{25}-[0-9a-f]{8}-(\d+)/gu, 'MACHINE-$1')
    .replaceAll(provision.namespace, 'NAMESPACE')
    .replaceAll(provision.compute.projectId, 'PROJECT')
    .replaceAll(name, 'NAME')
    .replaceAll(/p-[0-9a-f]{8}/gu, 'OTHER')
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/gu, 'TIME')
    .replaceAll(/\b127(?:\.\d+){3}\b/gu, 'ADDRESS');

const described = async (title: string, name: string): Promise<string> => {
  const proxy = await provision.get(name);
  const columns = Object.entries(await columnsOf(proxyPath(provision.namespace, name)));
  const conditions = (proxy?.status?.conditions ?? [])
    .filter(({ type, status }) => type !== 'Stalled' || status === 'True')
    .map(({ type, status, reason, message }) => `  ${type}=${status} ${reason}: ${message}`);
  const events = (await eventsOf(provision, name))
    .map(({ type, reason, message, count }) => `  ${type} ${reason} x${count}: ${message}`)
    .toSorted();
  const row = columns.map(([column, cell]) => `${column}=${typeof cell === 'string' ? cell : ''}`).join(' ');
  const lines = [`## ${title}`, row, 'Conditions:', ...conditions, 'Events:', ...events];
  return scrubbed(lines.join('\n'), name);
};

test('every kind of trouble reads so that a person knows what to do (W1, W7)', async () => {
  const pages: string[] = [];
  for (const [title, make] of Object.entries(TROUBLES)) pages.push(await described(title, await make()));
  await expect(`${pages.join('\n\n')}\n`).toMatchFileSnapshot('./troubles.txt');
}, 240_000);
