/** Everything that a stack says: logs of all its processes, answers, documents, messages, and what the cluster shows. */

import { readFile, readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';

import { PubSub, type Message, type Subscription } from '@google-cloud/pubsub';
import { z } from 'zod';

import { closeFirestore, openFirestore } from '#shared/firestore/client.ts';
import { callApi } from '#test/services/api.ts';
import { PROJECT } from '#test/stack/services.ts';
import { SUBSCRIPTIONS } from '#test/stack/subscriptions.ts';

import { poll, type World } from './world.ts';

export interface Said {
  readonly where: string;
  readonly text: string;
}

const logFiles = async ({ stack }: World): Promise<readonly string[]> =>
  (await readdir(stack.runDir, { recursive: true }))
    .filter((file) => file.endsWith('.log'))
    .map((file) => join(stack.runDir, file));

const logs = async (world: World): Promise<readonly Said[]> =>
  Promise.all(
    (await logFiles(world)).map(async (file) => ({
      where: `log ${basename(file)}`,
      text: await readFile(file, 'utf8'),
    })),
  );

/** Documents of one database, as JSON. */
export const documentsOf = async (databaseId: string): Promise<readonly Said[]> => {
  const db = openFirestore({ projectId: PROJECT, databaseId });
  try {
    const found: Said[] = [];
    for (const collection of await db.listCollections())
      for (const { ref, ...document } of (await collection.get()).docs.map((one) => ({
        ref: one.ref.path,
        data: one.data(),
      })))
        found.push({ where: `Firestore ${databaseId} ${ref}`, text: JSON.stringify(document.data) });
    return found;
  } finally {
    await closeFirestore(db);
  }
};

const clusterSaid = async ({ api, namespace }: World): Promise<readonly Said[]> => {
  const paths = [
    `/apis/crawl.example.com/v1alpha1/namespaces/${namespace}/proxies`,
    `/api/v1/namespaces/${namespace}/events`,
  ];
  return Promise.all(
    paths.map(async (path) => ({
      where: `cluster ${path}`,
      text: JSON.stringify((await callApi(api, path)).body),
    })),
  );
};

/** Whoever asks gets these, so that nothing in them may be anybody's secret. */
const answers = async (
  { stack, discoveryUrl }: World,
  leaseIds: readonly string[],
): Promise<readonly Said[]> => {
  const { provision, health, gc } = stack.deployments.urls;
  const json = { 'content-type': 'application/json' };
  const broken = { method: 'POST', headers: json, body: '{"holder":' };
  const calls: readonly (readonly [string, RequestInit])[] = [
    [`${discoveryUrl}/v1/proxies?free=true`, {}],
    [`${discoveryUrl}/v1/leases?holder=e2e`, {}],
    [`${discoveryUrl}/v1/leases`, broken],
    [`${discoveryUrl}/openapi.json`, {}],
    [`${gc}?dryRun=true`, { method: 'POST' }],
    [health, { method: 'POST' }],
    [`${health}/probes`, broken],
    [provision, broken],
    ...leaseIds.map((id) => [`${discoveryUrl}/v1/leases/${id}/renew`, { ...broken, body: '{}' }] as const),
  ];
  return Promise.all(
    calls.map(async ([url, call]) => ({
      where: `answer ${url}`,
      text: await (await fetch(url, call)).text(),
    })),
  );
};

export interface Tap {
  /** Every message since the tap was opened, attributes included. */
  readonly messages: readonly Said[];
  close(): Promise<void>;
}

/** Takes a copy of every message of every topic. */
export const openTap = async (): Promise<Tap> => {
  const client = new PubSub({ projectId: PROJECT });
  const messages: Said[] = [];
  const topics = [
    ...new Set(SUBSCRIPTIONS.flatMap(({ topic, deadLetterTopic }) => [topic, deadLetterTopic])),
  ];
  const taps: readonly Subscription[] = await Promise.all(
    topics.map(async (topic) => {
      const [tap] = await client.createSubscription(topic, `${topic}-tap`);
      tap.on('message', (message: Message) => {
        const { attributes, orderingKey } = message;
        const text = JSON.stringify({ data: message.data.toString(), attributes, orderingKey });
        messages.push({ where: `message of ${topic}`, text });
        message.ack();
      });
      return tap;
    }),
  );
  return {
    messages,
    async close() {
      await Promise.all(taps.map((tap) => tap.close()));
      await client.close();
    },
  };
};

/** All that anybody can read who has no right to secrets. */
export const everythingSaid = async (
  world: World,
  tap: Tap,
  leaseIds: readonly string[] = [],
): Promise<readonly Said[]> => [
  ...(await answers(world, leaseIds)),
  ...(await clusterSaid(world)),
  ...(await documentsOf('(default)')),
  ...tap.messages,
  ...(await logs(world)),
];

const lineSchema = z.looseObject({
  message: z.string(),
  'logging.googleapis.com/trace': z.string().optional(),
  'logging.googleapis.com/spanId': z.string().optional(),
});
export type LogLine = z.infer<typeof lineSchema>;

/** Log lines of one deployable. */
export const linesOf = async ({ stack }: World, name: string): Promise<readonly LogLine[]> =>
  (await readFile(join(stack.runDir, `${name}.log`), 'utf8'))
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => lineSchema.parse(JSON.parse(line)));

/** The first line of a deployable that begins so and names this Proxy; waits for it. */
export const lineOf = (world: World, name: string, start: string, uid: string): Promise<LogLine> =>
  poll(`${name} says ${start} of ${uid}`, async () =>
    (await linesOf(world, name)).find((line) => line.message.startsWith(start) && line['uid'] === uid),
  );
