/** What makes orphans: Proxies that go without us, records that are lost, and a cluster or a gc that is not there. */

import { pause } from '#shared/app/wait.ts';
import { closeFirestore, openFirestore } from '#shared/firestore/client.ts';
import type { Link } from '#test/services/link.ts';
import type { World } from '#test/e2e/world.ts';

import type { Fleet, Slot } from './fleet.ts';
import type { Random } from './random.ts';

export interface Losses {
  /** A Proxy goes with its finalizer; sometimes its record is lost as well. */
  takeAway(slot: Slot): Promise<void>;
  /** A Proxy lives, but what is known of it is lost, wholly or in part. */
  forget(slot: Slot): Promise<void>;
  /** Most of a namespace is swept away, finalizers, records and all. */
  disaster(): Promise<string>;
  /** The cluster does not answer for a moment, or refuses. */
  outage(): string;
  /** Several runs of gc at once. */
  overlap(): string;
  kill(): string;
  /** Ends outages, and what was opened. */
  end(): Promise<void>;
}

const OVERLAPPING = 3;

/** What was blocked stays so for those who do not notice, unless it is cut. */
const healSoon = async (link: Link, cut: boolean, ms: number): Promise<void> => {
  await pause(ms);
  link.heal();
  if (cut) link.cut();
};

export const makeLosses = (world: World, fleet: Fleet, random: Random): Losses => {
  const { databaseId, link, deployments } = world.installation;
  const db = openFirestore({ projectId: world.stack.env['GOOGLE_CLOUD_PROJECT'] ?? '', databaseId });
  const under = new Set<Promise<unknown>>();
  const wait = (work: Promise<unknown>): void => {
    under.add(work);
    void work.finally(() => under.delete(work));
  };

  /** As the runbook says after records were changed by hand: gc looks at all of them in its next run. */
  const forgetIndex = async (): Promise<void> => {
    const batch = db.batch();
    for (const index of await db.collection('fleet').listDocuments()) batch.delete(index);
    await batch.commit();
  };
  const loseRecord = async ({ uid }: Slot, withLeases: boolean): Promise<void> => {
    const batch = db.batch();
    batch.delete(db.collection('proxies').doc(uid));
    if (withLeases) batch.delete(db.collection('leases').doc(uid));
    await batch.commit();
  };
  const vanish = async (slot: Slot, lost: boolean): Promise<void> => {
    await fleet.bypass(slot);
    if (lost) await loseRecord(slot, true);
  };

  return {
    takeAway: (slot) => vanish(slot, random.chance(0.5)),
    async forget(slot) {
      fleet.note(slot, 'forgotten');
      await loseRecord(slot, random.chance(0.5));
      fleet.note(slot, 'forgotten');
    },
    async disaster() {
      const victims = fleet.slots
        .filter(({ phase }) => phase === 'present')
        .filter(() => !random.chance(0.1));
      for (const slot of victims) await vanish(slot, true);
      return `${victims.length} of ${world.installation.id} are swept away`;
    },
    outage() {
      if (!link) return 'there is no link';
      const how = random.pick(['block', 'refuse', 'cut'] as const);
      link[how]();
      wait(healSoon(link, how === 'block' && random.chance(0.5), 500 + random.int(2_500)));
      return `the cluster of ${world.installation.id}: ${how}`;
    },
    overlap() {
      for (let run = 0; run < OVERLAPPING; run += 1)
        // A killed instance answers nobody.
        wait(fetch(`${deployments.urls.gc}/`, { method: 'POST' }).then((answer) => answer.text(), String));
      return `${OVERLAPPING} runs`;
    },
    kill() {
      try {
        deployments.instances.gc.kill('SIGKILL');
      } catch {
        // It is dead already.
      }
      return 'gc is killed';
    },
    async end() {
      await Promise.all(under);
      link?.heal();
      link?.cut();
      await forgetIndex();
      await closeFirestore(db);
    },
  };
};
