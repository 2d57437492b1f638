/** Other people's machines in the same project, some of which look almost like ours: nobody may touch them. */

import { randomUUID } from 'node:crypto';

import { MACHINE_LABELS, machineName } from '#shared/domain/names.ts';
import type { World } from '#test/e2e/world.ts';
import { GCP_SPEC } from '#test/compute/builders.ts';

interface Bystander {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

const ZONE = 'europe-west1-b';

/** Of an installation `id`: each fails one thing that a machine of ours has. */
const lookalikes = (id: string): readonly Bystander[] => {
  const uid = randomUUID();
  return [
    { name: `${id}-web-1`, labels: {} },
    { name: `${id}-web-2`, labels: { [MACHINE_LABELS.installation]: id } },
    { name: `web-of-${id}`, labels: { [MACHINE_LABELS.installation]: id, [MACHINE_LABELS.uid]: uid } },
    {
      name: machineName(`${id}x`, uid, 'abcdef01', 1),
      labels: { [MACHINE_LABELS.installation]: `${id}x`, [MACHINE_LABELS.uid]: uid },
    },
  ];
};

const insert = async ({ stack }: World, { name, labels }: Bystander): Promise<void> => {
  const project = stack.env['GOOGLE_CLOUD_PROJECT'] ?? '';
  const { machineType, image } = GCP_SPEC;
  const answer = await fetch(
    `${stack.cloud.compute.url}/compute/v1/projects/${project}/zones/${ZONE}/instances`,
    {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        name,
        labels,
        machineType: `zones/${ZONE}/machineTypes/${machineType}`,
        disks: [{ boot: true, autoDelete: true, initializeParams: { sourceImage: image, labels } }],
        networkInterfaces: [{ subnetwork: 'regions/europe-west1/subnetworks/default' }],
      }),
    },
  );
  if (!answer.ok) throw new Error(`no bystander ${name}: ${await answer.text()}`);
};

/** Makes them; resolves with what says which of them were touched. */
export const makeBystanders = async (worlds: readonly World[]): Promise<() => readonly string[]> => {
  const [first] = worlds;
  if (!first) return () => [];
  const all = worlds.flatMap(({ installation }) => lookalikes(installation.id));
  for (const one of all) await insert(first, one);
  return () => {
    const { control } = first.stack.cloud.compute;
    const there = new Set(control.instances().map(({ name }) => name));
    const names = new Set(all.map(({ name }) => name));
    const calls = control
      .calls()
      .filter(({ caller, httpMethod, name = '' }) => caller && httpMethod !== 'GET' && names.has(name));
    return [
      ...calls.map(
        ({ name = '', method, caller = '' }) => `${name} of somebody else: ${method} by ${caller}`,
      ),
      ...[...names].filter((name) => !there.has(name)).map((name) => `${name} of somebody else is gone`),
    ];
  };
};
