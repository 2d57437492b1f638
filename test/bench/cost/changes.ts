/** What it takes to create, replace and delete a proxy, and to lease one: counted on the wire of a whole stack. */

import { Agent } from 'node:http';

import { z } from 'zod';

import { pause } from '#shared/app/wait.ts';
import { applyObject, callApi, type ApiAddress } from '#test/services/api.ts';
import { ensureNamespace } from '#test/services/apply.ts';
import { makeProgress } from '#test/stack/progress.ts';
import { startStack, type Stack } from '#test/stack/stack.ts';
import type { Change, Counts, Leases } from '#test/tools/cost-counts.ts';

import { send } from '../leases/calls.ts';
import { since, startMeter, type Bill, type Meter } from './meter.ts';

const NAMESPACE = 'cost';
const PROXIES = 20;
const LEASES = 500;
const WIDTH = 64;
const WITHIN_MS = 120_000;

interface World {
  readonly stack: Stack;
  readonly api: ApiAddress;
  readonly firestore: Meter;
  readonly pubsub: Meter;
}

const listSchema = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string(), generation: z.number() }),
      status: z
        .object({
          observedGeneration: z.number().optional(),
          conditions: z.array(z.object({ type: z.string(), status: z.string() })).default([]),
        })
        .default({ conditions: [] }),
    }),
  ),
});
type Listed = z.output<typeof listSchema>['items'];

const PATH = `/apis/crawl.example.com/v1alpha1/namespaces/${NAMESPACE}/proxies`;
const nameOf = (index: number): string => `counted-${index}`;

const apply = ({ api }: World, index: number, machineType: string): Promise<unknown> =>
  applyObject(api, {
    apiVersion: 'crawl.example.com/v1alpha1',
    kind: 'Proxy',
    metadata: { name: nameOf(index), namespace: NAMESPACE },
    spec: {
      provider: 'gcp',
      maxLeases: WIDTH,
      drainTimeoutSeconds: 0,
      gcp: {
        zones: ['europe-west1-b'],
        machineType,
        image: 'projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64',
      },
    },
  });

const until = async ({ api }: World, seen: (items: Listed) => boolean): Promise<void> => {
  const deadline = performance.now() + WITHIN_MS;
  while (!seen(listSchema.parse((await callApi(api, PATH)).body).items)) {
    if (performance.now() > deadline) throw new Error('the Proxies did not get there in time');
    await pause(250);
  }
};

const allReady = (items: Listed): boolean =>
  items.length === PROXIES &&
  items.every(
    ({ metadata, status }) =>
      status.observedGeneration === metadata.generation &&
      status.conditions.some(({ type, status: value }) => type === 'Ready' && value === 'True'),
  );

const bills = ({ firestore, pubsub }: World): Bill => ({
  ...firestore.bill,
  messages: pubsub.bill.messages,
});

/** What still runs then belongs to it. */
const QUIET_MS = 2000;

const settled = async (world: World): Promise<void> => {
  for (let before = -1; before !== bills(world).writes + bills(world).messages;) {
    before = bills(world).writes + bills(world).messages;
    await pause(QUIET_MS);
  }
};

const per = (value: number): number => Math.round((value * 10) / PROXIES) / 10;

const changeOf = async (world: World, work: () => Promise<void>): Promise<Change> => {
  const { control } = world.stack.cloud.compute;
  const before = bills(world);
  control.resetCalls();
  await work();
  await settled(world);
  const { reads, writes, deletes, messages } = since(bills(world), before);
  return {
    reads: per(reads),
    writes: per(writes),
    deletes: per(deletes),
    messages: per(messages),
    computeCalls: per(control.countCalls()),
  };
};

const all = (work: (index: number) => Promise<unknown>): Promise<unknown> =>
  Promise.all(Array.from({ length: PROXIES }, (_, index) => work(index)));

const leaseSchema = z.object({ leaseId: z.string() });

/** `width` clients, each of which acquires, renews once and releases, again and again. */
const leasesOf = async (world: World, width: number): Promise<Leases> => {
  const url = `${world.stack.deployments.urls.discovery}/v1/leases`;
  const agent = new Agent({ keepAlive: true, maxSockets: width });
  const body = JSON.stringify({ holder: 'cost', proxy: { namespace: NAMESPACE, name: nameOf(0) } });
  const lease = async (): Promise<void> => {
    const { status, text } = await send(agent, url, 'POST', body);
    if (status !== 201) throw new Error(`acquire was answered ${status}: ${text}`);
    const { leaseId } = leaseSchema.parse(JSON.parse(text));
    await send(agent, `${url}/${leaseId}/renew`, 'POST', '{}');
    await send(agent, `${url}/${leaseId}`, 'DELETE');
  };
  const crowd = async (leases: number): Promise<void> => {
    let left = leases;
    const client = async (): Promise<void> => {
      while (left-- > 0) await lease();
    };
    await Promise.all(Array.from({ length: width }, client));
  };
  await crowd(width);
  const before = bills(world);
  await crowd(LEASES);
  agent.destroy();
  const { reads, writes } = since(bills(world), before);
  const perThousand = (count: number): number => Math.round((count * 1000) / LEASES);
  return { reads: perThousand(reads), writes: perThousand(writes), requests: perThousand(3 * LEASES) };
};

const count = async (world: World): Promise<Pick<Counts, 'changes' | 'leases'>> => {
  const created = await changeOf(world, async () => {
    await all((index) => apply(world, index, 'e2-micro'));
    await until(world, allReady);
  });
  const leases = { alone: await leasesOf(world, 1), crowded: await leasesOf(world, WIDTH) };
  const replaced = await changeOf(world, async () => {
    await all((index) => apply(world, index, 'e2-small'));
    await until(world, allReady);
  });
  const deleted = await changeOf(world, async () => {
    await all((index) => callApi(world.api, `${PATH}/${nameOf(index)}`, { method: 'DELETE' }));
    await until(world, ({ length }) => length === 0);
  });
  return { changes: { created, replaced, deleted }, leases };
};

export const countChanges = async (
  say: (line: string) => void,
): Promise<Pick<Counts, 'changes' | 'leases'>> => {
  const [firestore, pubsub] = await Promise.all([startMeter(), startMeter()]);
  try {
    const stack = await startStack({
      progress: makeProgress(say),
      scheduled: false,
      settings: {
        FIRESTORE_EMULATOR_HOST: firestore.host,
        PUBSUB_EMULATOR_HOST: pubsub.host,
        MAX_REPLACING_PERCENT: '100',
      },
    });
    firestore.to(stack.env['FIRESTORE_EMULATOR_HOST'] ?? '');
    pubsub.to(stack.env['PUBSUB_EMULATOR_HOST'] ?? '');
    try {
      const { server, caFile, tokens } = stack.controlPlane;
      const api: ApiAddress = { server, caFile, token: tokens['admin'] ?? '' };
      await ensureNamespace(api, NAMESPACE);
      return await count({ stack, api, firestore, pubsub });
    } finally {
      await stack.stop();
    }
  } finally {
    await Promise.all([firestore.stop(), pubsub.stop()]);
  }
};
