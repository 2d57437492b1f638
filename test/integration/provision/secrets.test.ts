import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { z } from 'zod';

import { closeFirestore, openFirestore } from '#shared/firestore/client.ts';

import { GCP } from '../proxies.ts';
import { cloudOf, eventsOf } from './cloud.ts';
import { secretOf, startProvision, type Provision } from './fixture.ts';

const INIT_LABEL = { 'crawl.example.com/cloud-init': 'true' };
const ACCESS_LABEL = { 'crawl.example.com/credentials': 'true' };
const MARKS = ['a-marker-that-must-not-leak', 'another-marker-that-must-not-leak', 'a-secret-password'];
const [FIRST, SECOND, PASSWORD = ''] = MARKS;
const userData = (mark: string | undefined) => ({ 'user-data': `#cloud-config\n# ${mark}\n` });

let provision: Provision;
let cloud: ReturnType<typeof cloudOf>;
let messages: () => Promise<string>;

const pubsub = async (path: string, method: string, body: object): Promise<unknown> => {
  const root = `http://${inject('emulators').pubsub}/v1/projects/${provision.compute.projectId}`;
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`${root}/${path}`, { method, headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
};

const pulled = z.object({
  receivedMessages: z.array(z.object({ message: z.object({ data: z.string() }) })).optional(),
});

beforeAll(async () => {
  provision = await startProvision();
  cloud = cloudOf(provision);
  // Loads the client library, which takes its time.
  await provision.provider.get('nobody', 'europe-west1-b');
  const topic = `projects/${provision.compute.projectId}/topics/proxy-probes`;
  await pubsub('subscriptions/all', 'PUT', { topic });
  messages = async () => {
    const answer = pulled.parse(await pubsub('subscriptions/all:pull', 'POST', { maxMessages: 100 }));
    const found = answer.receivedMessages ?? [];
    return found.map(({ message }) => Buffer.from(message.data, 'base64').toString()).join('\n');
  };
});
afterAll(async () => {
  await provision.stop();
});

/** Every document of the database that all functions share. */
const mainDatabase = async (): Promise<string> => {
  const db = openFirestore({ projectId: provision.compute.projectId });
  try {
    const collections = await db.listCollections();
    const snapshots = await Promise.all(collections.map((collection) => collection.get()));
    return JSON.stringify(snapshots.flatMap(({ docs }) => docs.map((doc) => doc.data())));
  } finally {
    await closeFirestore(db);
  }
};

/** As often as calls are needed until the replacement is over. */
const replaced = async (name: string): Promise<void> => {
  await provision.nudge(name);
  await provision.judge(name, 'Healthy');
  await provision.nudge(name);
};

describe('another content of a Secret', () => {
  test('replaces exactly the Proxies that use it, and is in nothing that provision writes', async () => {
    await secretOf(provision, 'init', userData(FIRST), INIT_LABEL);
    await secretOf(provision, 'access', { username: 'crawler', password: PASSWORD }, ACCESS_LABEL);
    const using = { ...GCP, cloudInit: { secretRef: { name: 'init' } } };
    const one = await cloud.ready(using);
    const two = await cloud.ready({ ...using, credentialsSecretRef: { name: 'access' } });
    const other = await cloud.ready({ ...GCP, cloudInit: { inline: userData(FIRST)['user-data'] } });
    const before = await Promise.all([one, two, other].map(cloud.machineOf));

    await secretOf(provision, 'init', userData(SECOND), INIT_LABEL);
    for (const name of [one, two, other]) await replaced(name);
    const after = await Promise.all([one, two, other].map(cloud.machineOf));
    expect(after.map(({ id }, index) => id !== before[index]?.id)).toEqual([true, true, false]);

    // The label that is lost stops everything new, and says so; it shows nothing either.
    await secretOf(provision, 'init', userData(SECOND), {});
    await provision.nudge(one);
    const objects = await Promise.all([one, two].map((name) => provision.get(name)));
    const events = await Promise.all([one, two, other].map((name) => eventsOf(provision, name)));
    const told = await messages();
    const shown = {
      logs: provision.lines.join('\n'),
      documents: await mainDatabase(),
      objects: JSON.stringify(objects),
      events: JSON.stringify(events),
      messages: told,
    };
    expect(shown.messages).toContain(objects[0]?.metadata.uid);
    expect(shown.documents).toContain(after[0]?.name);
    expect(shown.events).toContain('ProbeSucceeded');
    expect(shown.objects).toContain('SecretNotLabelled');
    expect(shown.logs.length).toBeGreaterThan(0);
    for (const [where, text] of Object.entries(shown))
      for (const mark of MARKS) expect(text.includes(mark), `${mark} in ${where}`).toBe(false);
    // Where discovery and health read credentials, and only there; user-data is not even there.
    const [, secret] = await provision.documents(two);
    expect(secret).toContain(PASSWORD);
    expect(secret).not.toContain(SECOND);
  }, 180_000);
});
