/** What a test of provision looks at in the cloud and in the cluster. */

import { z } from 'zod';

import { callApi } from '#test/services/api.ts';

import { GCP, api } from '../proxies.ts';
import type { Provision } from './fixture.ts';

const disksSchema = z.object({ items: z.array(z.object({ name: z.string() })).default([]) });

export const cloudOf = (provision: Provision) => {
  const { control } = provision.compute.standIn;
  const machinesOf = async (name: string) => {
    const uid = (await provision.record(name))?.ref.uid;
    return control.instances().filter(({ labels }) => labels['egress-proxy-uid'] === uid);
  };
  const applied = async (spec: object = GCP): Promise<string> => {
    const name = await provision.apply(spec);
    await provision.nudge(name);
    return name;
  };
  return {
    control,
    machinesOf,
    applied,
    inserts: (name: string) => control.countCalls({ method: 'instances.insert', name }),
    /** Create calls that were told that the name exists. */
    refused: (name: string) => control.countCalls({ method: 'instances.insert', name, status: 409 }),
    deletes: (name: string) => control.countCalls({ method: 'instances.delete', name }),
    /** Its only machine. */
    machineOf: async (name: string) => {
      const [machine, ...others] = await machinesOf(name);
      if (!machine || others.length > 0) throw new Error(`${name} has not exactly one machine`);
      return machine;
    },
    ready: async (spec: object = GCP): Promise<string> => {
      const name = await applied(spec);
      await provision.judge(name, 'Healthy');
      await provision.nudge(name);
      return name;
    },
    /** Names of the boot disks in a zone. */
    disks: async (zone: string): Promise<readonly string[]> => {
      const { standIn, projectId } = provision.compute;
      const answer = await fetch(`${standIn.url}/compute/v1/projects/${projectId}/zones/${zone}/disks`);
      const { items } = disksSchema.parse(await answer.json());
      return items.map(({ name }) => name);
    },
    /** A call that the cloud takes from somebody else than provision. */
    call: async (method: string, path: string, body?: object): Promise<void> => {
      const { standIn, projectId } = provision.compute;
      const answer = await fetch(`${standIn.url}/compute/v1/projects/${projectId}/${path}`, {
        method,
        ...(body ? { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } } : {}),
      });
      if (!answer.ok) throw new Error(await answer.text());
    },
  };
};

const eventsSchema = z.object({
  items: z.array(
    z.object({
      type: z.string(),
      reason: z.string(),
      message: z.string(),
      count: z.number(),
      involvedObject: z.object({ name: z.string() }),
    }),
  ),
});

/** The Events of a Proxy as `kubectl describe` shows them, and everything that the namespace's Events hold, as text. */
export const eventsOf = async ({ namespace }: Provision, name: string) => {
  const { body } = await callApi(api(), `/api/v1/namespaces/${namespace}/events`);
  return eventsSchema.parse(body).items.filter(({ involvedObject }) => involvedObject.name === name);
};

const tableSchema = z.object({
  columnDefinitions: z.array(z.object({ name: z.string(), priority: z.number() })),
  rows: z.array(z.object({ cells: z.array(z.unknown()) })),
});

/** The printer columns of a Proxy as `kubectl get` shows them. */
export const columnsOf = async (path: string): Promise<Readonly<Record<string, unknown>>> => {
  const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io';
  const { columnDefinitions, rows } = tableSchema.parse((await callApi(api(), path, { accept })).body);
  return Object.fromEntries(
    columnDefinitions.flatMap(({ name, priority }, index) =>
      priority === 0 && !['Name', 'Age'].includes(name) ? [[name, rows[0]?.cells[index]]] : [],
    ),
  );
};
