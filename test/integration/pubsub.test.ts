import { randomBytes } from 'node:crypto';

import { PubSub, type Message, type Subscription } from '@google-cloud/pubsub';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';

import type { ChangeMessage } from '#shared/domain/message.ts';
import { parseChange, parseProbe } from '#shared/app/push.ts';
import { openPublisher, type Publisher, type PublisherOptions } from '#shared/pubsub/publisher.ts';

import { openLink, type Link } from '#test/services/link.ts';

const PROJECT = `t${randomBytes(6).toString('hex')}`;
const TOPICS = { changesTopic: 'proxy-changes', probesTopic: 'proxy-probes' };

interface Received {
  readonly data: unknown;
  readonly orderingKey: string;
  readonly attributes: Readonly<Record<string, string>>;
}

let admin: PubSub;
let link: Link;
const subscriptions: Subscription[] = [];
const inbox: Record<keyof typeof TOPICS, Received[]> = { changesTopic: [], probesTopic: [] };

const subscribe = async (kind: keyof typeof TOPICS): Promise<void> => {
  const [topic] = await admin.createTopic(TOPICS[kind]);
  const [subscription] = await topic.createSubscription(`${TOPICS[kind]}-inbox`, {
    enableMessageOrdering: true,
  });
  subscription.on('message', (message: Message) => {
    const data: unknown = JSON.parse(message.data.toString());
    const { orderingKey = '', attributes } = message;
    inbox[kind].push({ data, orderingKey, attributes });
    message.ack();
  });
  subscriptions.push(subscription);
};

beforeAll(async () => {
  admin = new PubSub({ projectId: PROJECT, apiEndpoint: inject('emulators').pubsub, emulatorMode: true });
  link = await openLink(inject('emulators').pubsub);
  await subscribe('changesTopic');
  await subscribe('probesTopic');
});
afterAll(async () => {
  await Promise.all(subscriptions.map((subscription) => subscription.close()));
  await Promise.all([admin.close(), link.close()]);
});

const open = (more: Partial<PublisherOptions> = {}): Publisher => {
  vi.stubEnv('PUBSUB_EMULATOR_HOST', link.host);
  const publisher = openPublisher({ projectId: PROJECT, ...TOPICS, ...more, deadlineMs: 1000 });
  vi.unstubAllEnvs();
  return publisher;
};

const aChange = (uid: string, reason: string): ChangeMessage => ({ namespace: 'n', name: 'p', uid, reason });
const uid = (): string => `00000000-0000-4000-8000-${randomBytes(6).toString('hex')}`;
const reasonsOf = (key: string): readonly unknown[] =>
  inbox.changesTopic
    .filter(({ orderingKey }) => orderingKey === key)
    .map(({ data }) => parseChange(data)?.reason);
const attributesOf = (key: string) =>
  inbox.changesTopic.find(({ orderingKey }) => orderingKey === key)?.attributes;

describe('the publisher', () => {
  test('keeps the order of one Proxy’s messages, and sends nothing but identity and reason', async () => {
    const publisher = open();
    const key = uid();
    const extra = { ...aChange(key, '0'), spec: { secret: 'x' } };
    await publisher.change(extra);
    await Promise.all(Array.from({ length: 50 }, (_, n) => publisher.change(aChange(key, String(n + 1)))));
    await vi.waitUntil(() => reasonsOf(key).length === 51, { timeout: 20_000 });
    expect(reasonsOf(key)).toEqual(Array.from({ length: 51 }, (_, n) => String(n)));
    expect(inbox.changesTopic.find(({ orderingKey }) => orderingKey === key)?.data).toEqual(
      aChange(key, '0'),
    );
    await publisher.close();
  });

  test('says which trace a message belongs to: its own, or else that of whoever sends it', async () => {
    const publisher = open({ traceparent: () => 'ambient' });
    const [own, other] = [uid(), uid()];
    await publisher.change({ ...aChange(own, '0'), traceparent: 'own' });
    await publisher.change(aChange(other, '0'));
    await vi.waitUntil(() => attributesOf(other) && attributesOf(own), { timeout: 20_000 });
    expect([attributesOf(own), attributesOf(other)]).toEqual([
      { googclient_traceparent: 'own' },
      { googclient_traceparent: 'ambient' },
    ]);
    await publisher.close();
  });

  test('sends probes without an order', async () => {
    const publisher = open();
    const probe = { uid: uid(), reason: 'published' } as const;
    await publisher.probe(probe);
    await vi.waitUntil(() => inbox.probesTopic.length > 0, { timeout: 20_000 });
    expect(inbox.probesTopic.map(({ data, orderingKey }) => [parseProbe(data), orderingKey])).toEqual([
      [probe, ''],
    ]);
    await publisher.close();
  });

  test('row 13: a key that failed takes messages again at once, and an outage of ten seconds is over in five', async () => {
    const publisher = open();
    const key = uid();
    await publisher.change(aChange(key, 'before'));
    link.refuse();
    const begun = performance.now();
    while (performance.now() - begun < 10_000) {
      await expect(publisher.change(aChange(key, 'during'))).rejects.toMatchObject({ code: 'Transient' });
    }
    link.heal();
    await vi.waitFor(() => publisher.change(aChange(key, 'after')), { timeout: 6500, interval: 10 });
    await vi.waitUntil(() => reasonsOf(key).includes('after'), { timeout: 20_000 });
    expect(reasonsOf(key).filter((reason) => reason !== 'during')).toEqual(['before', 'after']);
    await publisher.close();
  });

  test('says so when the topic does not exist', async () => {
    const publisher = open({ changesTopic: 'no-such-topic' });
    await expect(publisher.change(aChange(uid(), 'x'))).rejects.toMatchObject({
      code: 'Transient',
      message: 'Pub/Sub: publish to no-such-topic failed',
    });
    await publisher.close();
  });

  test('N2: what is pending is sent before it closes', async () => {
    const publisher = open();
    const key = uid();
    const sent = publisher.change(aChange(key, 'last'));
    await publisher.close();
    await sent;
    await vi.waitUntil(() => reasonsOf(key).length === 1, { timeout: 20_000 });
    expect(reasonsOf(key)).toEqual(['last']);
  });
});
