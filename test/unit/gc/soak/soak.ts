/** Months of a bad life in seconds: whatever happens, nothing is deleted wrongly, and once it ends nothing is left. */

import { z } from 'zod';

import { runGc } from './gc.ts';
import { provision } from './provision.ts';
import {
  LIMITS,
  ZONES,
  aSoakWorld,
  addProxy,
  fails,
  happens,
  pick,
  vanish,
  type SoakWorld,
} from './world.ts';

const MINUTE_MS = 60_000;
/** One name is the beginning of the other, and both have Proxies of the same names. */
const INSTALLATIONS = ['prod', 'prod2'] as const;

export interface SoakOptions {
  readonly seed: number;
  /** Proxies of each installation. */
  readonly proxies: number;
  /** Minutes of trouble. */
  readonly minutes: number;
}

export interface SoakResult {
  readonly wrong: readonly string[];
  /** What is left once faults have stopped, in words. */
  readonly leaks: readonly string[];
  readonly done: SoakWorld['done'];
}

/** Somebody takes the finalizer away, and the Proxy with it; sometimes a restored database has lost its record as well. */
const bypass = (world: SoakWorld, uid: string): void => {
  world.proxies.delete(uid);
  if (happens(world, 0.3)) world.records.delete(uid);
};

/** Most of a namespace is swept away by hand, finalizers, records and all. */
const disaster = (world: SoakWorld): void => {
  for (const { uid, owner } of world.proxies.values()) {
    if (owner !== INSTALLATIONS[0] || happens(world, 0.05)) continue;
    world.proxies.delete(uid);
    world.records.delete(uid);
  }
};

const churn = (world: SoakWorld, proxies: number): void => {
  for (const owner of INSTALLATIONS) {
    const own = [...world.proxies.values()].filter((proxy) => proxy.owner === owner);
    const names = new Set(own.map(({ name }) => name));
    for (let index = 0; index < proxies; index += 1) {
      if (names.has(`p-${index}`) || !happens(world, 0.1)) continue;
      const uid = addProxy(world, owner, `p-${index}`);
      // Made and deleted in one breath, while its machine is on its way.
      provision(world, uid);
      if (happens(world, 0.2)) bypass(world, uid);
    }
    for (const proxy of own) {
      if (happens(world, 0.01)) proxy.deleting = true;
      if (happens(world, 0.01)) proxy.generation += 1;
      if (happens(world, 0.005)) bypass(world, proxy.uid);
      // A database that was restored from a backup lacks the record of a Proxy that lives.
      if (happens(world, 0.003)) world.records.delete(proxy.uid);
    }
  }
};

const cloudEvents = (world: SoakWorld): void => {
  for (const zone of ZONES) {
    if (fails(world)) world.unreachable.add(zone);
    else if (happens(world, 0.3) || world.trouble === 0) world.unreachable.delete(zone);
  }
  const victim = pick(world, [...world.cloud.values()]);
  if (victim && fails(world)) victim.goneAt = Math.min(victim.goneAt, world.now);
  for (const entry of world.cloud.values()) if (entry.goneAt <= world.now) vanish(world, entry);
};

/** Messages are lost or come twice; what the watcher sends of itself comes too. */
const deliver = (world: SoakWorld, uids: readonly string[]): void => {
  for (const uid of uids) {
    if (fails(world)) continue;
    provision(world, uid);
    if (fails(world)) provision(world, uid);
  }
};

const planSchema = z.object({ digest: z.string(), frozen: z.array(z.unknown()) });

/** A person reads the plan and releases exactly that. */
const confirm = async (world: SoakWorld, installation: string): Promise<void> => {
  const plan = planSchema.parse((await runGc(world, installation, () => undefined, 'dryRun=true')).body);
  if (plan.frozen.length > 0) await runGc(world, installation, () => undefined, `confirm=${plan.digest}`);
};

const minute = async (world: SoakWorld): Promise<void> => {
  world.now += MINUTE_MS;
  cloudEvents(world);
  const fromWatcher = [...world.proxies.values()].filter(
    ({ generation, observed, deleting }) => (deleting || generation !== observed) && happens(world, 0.5),
  );
  deliver(
    world,
    fromWatcher.map(({ uid }) => uid),
  );
  for (const installation of INSTALLATIONS) {
    const nudged: string[] = [];
    const { body } = await runGc(world, installation, (uid) => nudged.push(uid));
    if (JSON.stringify(body).includes('"help"')) {
      world.done.frozen += 1;
      if (world.trouble === 0) await confirm(world, installation);
    }
    deliver(world, nudged);
  }
};

const leaksOf = (world: SoakWorld): readonly string[] => [
  ...[...world.cloud.values()].flatMap(({ machine }) => {
    const record = world.records.get(machine.uid ?? '')?.record;
    const isServing = record?.serving?.endpoint.instanceId === machine.instanceId;
    return world.proxies.has(machine.uid ?? '') && isServing ? [] : [`machine ${machine.name}`];
  }),
  ...[...world.leftovers.values()].flatMap(({ uid = '', name }) =>
    // As long as its Proxy lives it is the work of provision.
    world.proxies.has(uid) ? [] : [`leftover of ${name}`],
  ),
  ...[...world.records.values()].flatMap(({ record }) =>
    world.proxies.has(record.ref.uid) ? [] : [`record ${record.ref.uid}, ${record.gone ? 'gone' : 'alive'}`],
  ),
  ...[...world.proxies.values()].flatMap(({ uid, name, deleting }) =>
    !deleting && world.records.get(uid)?.record.serving ? [] : [`Proxy ${name} is not converged`],
  ),
  ...[...world.sightings].flatMap(([installation, keys]) =>
    [...keys.keys()].map((key) => `sighting of ${installation}: ${key}`),
  ),
];

/** Long enough for an age, two sightings, a tombstone's time and, ten in a run, everything that went. */
const SETTLE_MINUTES = (LIMITS.tombstoneAgeMs + 2 * LIMITS.minAgeMs) / MINUTE_MS + 60;

export const soak = async ({ seed, proxies, minutes }: SoakOptions): Promise<SoakResult> => {
  const world = aSoakWorld(seed);
  for (const owner of INSTALLATIONS) {
    for (let index = 0; index < proxies; index += 1) addProxy(world, owner, `p-${index}`);
  }
  world.trouble = 0.08;
  for (let n = 0; n < minutes; n += 1) {
    churn(world, proxies);
    if (n === Math.floor(minutes * 0.9)) disaster(world);
    await minute(world);
  }
  world.trouble = 0;
  for (let n = 0; n < SETTLE_MINUTES; n += 1) await minute(world);
  return { wrong: world.wrong, leaks: leaksOf(world), done: world.done };
};
