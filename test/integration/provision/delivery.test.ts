/** Pub/Sub between a nudge and provision, with what the emulator's own push lacks: see test/stack/dispatcher.ts. */

import { once } from 'node:events';
import { createServer, type Server } from 'node:http';

import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { z } from 'zod';

import { makeLog } from '#shared/app/log.ts';
import { openPublisher, type Publisher } from '#shared/pubsub/publisher.ts';
import { startDispatcher, type Dispatcher } from '#test/stack/dispatcher.ts';
import { SUBSCRIPTIONS, type PushSubscription } from '#test/stack/subscriptions.ts';

import { openInstallation } from '../gc/installations.ts';
import { GCP } from '../proxies.ts';
import { cloudOf } from './cloud.ts';
import { condition, startProvision, type Provision } from './fixture.ts';

const TOPIC = 'changes-delivered';
const ATTEMPTS = 3;
const WITHIN = { timeout: 60_000 };

const envelope = z.object({
  message: z.object({ data: z.base64(), orderingKey: z.string() }),
  deliveryAttempt: z.number(),
});
const nudge = z.object({ uid: z.string(), reason: z.string() });

/** A delivery as the function saw it, and its answer. */
interface Delivery extends z.infer<typeof nudge> {
  readonly key: string;
  readonly attempt: number;
  readonly status: number;
}

let provision: Provision;
let cloud: ReturnType<typeof cloudOf>;
let server: Server;
let dispatcher: Dispatcher;
let publisher: Publisher;
const deliveries: Delivery[] = [];
/** Ordering keys that Pub/Sub delivers nothing of any more. */
const stalled = new Set<string>();

const subscription = (): PushSubscription => {
  const [changes] = SUBSCRIPTIONS;
  if (!changes) throw new Error('there is no subscription');
  return {
    ...changes,
    name: `${TOPIC}-provision`,
    topic: TOPIC,
    deadLetterTopic: `${TOPIC}-dead`,
    maxDeliveryAttempts: ATTEMPTS,
    retry: { minimumSeconds: 0.02, maximumSeconds: 0.1 },
  };
};

const deliver = async (body: Uint8Array): Promise<number> => {
  const { message, deliveryAttempt } = envelope.parse(JSON.parse(Buffer.from(body).toString()));
  if (stalled.has(message.orderingKey)) return 503;
  const { status } = await provision.post(body);
  const { uid, reason } = nudge.parse(JSON.parse(Buffer.from(message.data, 'base64').toString()));
  deliveries.push({ uid, reason, key: message.orderingKey, attempt: deliveryAttempt, status });
  return status;
};

const listen = async (): Promise<Server> => {
  const listening = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => void chunks.push(chunk));
    request.on('end', () => {
      void deliver(Buffer.concat(chunks))
        .catch(() => 500)
        .then((status) => response.writeHead(status).end());
    });
  }).listen(0, '127.0.0.1');
  await once(listening, 'listening');
  return listening;
};

beforeAll(async () => {
  provision = await startProvision();
  cloud = cloudOf(provision);
  // Loads the client library, which takes its time.
  await provision.provider.get('nobody', 'europe-west1-b');
  server = await listen();
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const { projectId } = provision.compute;
  dispatcher = await startDispatcher({
    projectId,
    urlOf: () => `http://127.0.0.1:${port}`,
    subscriptions: [subscription()],
    log: makeLog(() => undefined),
  });
  publisher = openPublisher({ projectId, changesTopic: TOPIC });
});
afterAll(async () => {
  await Promise.all([dispatcher.stop(), publisher.close()]);
  server.close();
  await provision.stop();
});

const refOf = async (name: string) => {
  const { metadata } = (await provision.get(name)) ?? {};
  return { namespace: provision.namespace, name, uid: metadata?.uid ?? '' };
};
const deliveriesOf = ({ uid }: { readonly uid: string }) => deliveries.filter((each) => each.uid === uid);
const provisioned = async (name: string) => condition(await provision.get(name), 'Provisioned')?.status;

const pulled = z.object({
  receivedMessages: z
    .array(
      z.object({ message: z.object({ data: z.string(), attributes: z.record(z.string(), z.string()) }) }),
    )
    .default([]),
});

/** What lies in the dead letters, each message once. */
const buried = async (): Promise<readonly string[]> => {
  const root = `http://${inject('emulators').pubsub}/v1/projects/${provision.compute.projectId}`;
  const answer = await fetch(`${root}/subscriptions/${TOPIC}-dead:pull`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ maxMessages: 100 }),
  });
  return pulled
    .parse(await answer.json())
    .receivedMessages.map(
      ({ message }) =>
        `${nudge.parse(JSON.parse(Buffer.from(message.data, 'base64').toString())).reason} of ${message.attributes['CloudPubSubDeadLetterSourceSubscription']}`,
    );
};

/** A converged Proxy whose zone then cannot be reached any more. */
const cutOff = async (zone: string) => {
  const name = await cloud.ready({ ...GCP, gcp: { ...GCP.gcp, zones: [zone] } });
  return { name, ref: await refOf(name), fault: cloud.control.addFault({ kind: 'unreachableZone', zone }) };
};

describe('a message that is refused', () => {
  test('row 18: comes again with its attempt, holds back its own Proxy only, and goes to the dead letters in the end', async () => {
    const { ref, fault } = await cutOff('us-central1-a');
    const other = await provision.apply(GCP);
    await publisher.change({ ...ref, reason: 'First' });
    await publisher.change({ ...ref, reason: 'Second' });
    await publisher.change({ ...(await refOf(other)), reason: 'Other' });
    await expect.poll(() => provisioned(other), WITHIN).toBe('True');
    await expect.poll(() => deliveriesOf(ref), WITHIN).toHaveLength(2 * ATTEMPTS);
    expect(deliveriesOf(ref).map(({ reason, attempt, status }) => [reason, attempt, status])).toEqual([
      ['First', 1, 503],
      ['First', 2, 503],
      ['First', 3, 503],
      ['Second', 1, 503],
      ['Second', 2, 503],
      ['Second', 3, 503],
    ]);
    cloud.control.removeFault(fault);
    const letters: string[] = [];
    await expect.poll(async () => letters.push(...(await buried())), WITHIN).toBe(2);
    expect(letters.toSorted()).toEqual([`First of ${TOPIC}-provision`, `Second of ${TOPIC}-provision`]);
  }, 120_000);
});

describe('a message that went to the dead letters', () => {
  test('row 16: and whatever Pub/Sub does with that key from then on: gc nudges the Proxy in another way, and it heals', async () => {
    const { name, ref, fault } = await cutOff('us-central1-b');
    const before = await provision.record(name);
    await publisher.change({ ...ref, reason: 'Poison' });
    await expect.poll(() => deliveriesOf(ref), WITHIN).toHaveLength(ATTEMPTS);
    const { wakeAt = Infinity } = (await provision.record(name)) ?? {};
    expect(wakeAt - Date.now(), 'gc looks again within the minute').toBeLessThanOrEqual(60_000);

    // The machine is lost meanwhile, and everything that follows on this key is held back for good.
    cloud.control.removeFault(fault);
    await cloud.control.vanish((await cloud.machineOf(name)).name);
    stalled.add(ref.uid);
    await publisher.change({ ...ref, reason: 'Held back' });

    const { projectId, standIn } = provision.compute;
    const { namespace } = provision;
    const gc = await openInstallation({ projectId, compute: standIn }, 'prod', {
      namespace,
      publish: (message, key) => publisher.change(message, key),
    });
    try {
      gc.advance(60_000);
      await gc.gc();
      expect(gc.nudges.map(({ uid }) => uid)).toContain(ref.uid);
      const { machine: lost = '' } = before?.serving ?? {};
      const served = async () => (await provision.record(name))?.serving?.machine ?? lost;
      await expect.poll(served, WITHIN).not.toBe(lost);
      await expect.poll(() => provisioned(name), WITHIN).toBe('True');
      expect(deliveriesOf(ref).map(({ reason }) => reason)).not.toContain('Held back');
    } finally {
      await gc.close();
    }
  }, 120_000);
});
