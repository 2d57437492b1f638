/** One installation's part of a run: its people, its trouble, and those who watch it. */

import type { World } from '#test/e2e/world.ts';

import { startBackground, type Background } from './crawlers.ts';
import { makeFleet, type Fleet, type Slot } from './fleet.ts';
import { differences, wrongDeletions } from './judge.ts';
import { leaks } from './leaks.ts';
import { startRollCall, wrongCalls, type LedgerLimits, type RollCall } from './ledger.ts';
import { makeLosses, type Losses } from './losses.ts';
import type { Random } from './random.ts';
import { makeTrouble, type Trouble } from './trouble.ts';
import { startWitness, type Witness } from './witness.ts';

export interface Life {
  readonly world: World;
  readonly fleet: Fleet;
  readonly trouble: Trouble;
  readonly losses: Losses;
  readonly witness: Witness;
  readonly background: Background;
  readonly rollCall: RollCall;
}

export interface LifeOptions {
  readonly proxies: number;
  /** Faults too that the product waits out for minutes. */
  readonly patient: boolean;
  /** How many lives go on at once. */
  readonly share: number;
}

/** Starts to watch, and makes the first Proxies. */
export const beginLife = async (world: World, random: Random, options: LifeOptions): Promise<Life> => {
  const fleet = makeFleet(world, options.proxies, random);
  const trouble = makeTrouble(world, fleet, random, options.patient);
  const losses = makeLosses(world, fleet, random);
  const witness = startWitness(world.stack.env['GOOGLE_CLOUD_PROJECT'] ?? '', world.installation.databaseId);
  await fleet.changeSecret();
  const background = startBackground(world, witness, options.share);
  const rollCall = startRollCall(world);
  for (const slot of fleet.slots.slice(0, Math.ceil(options.proxies * 0.8))) await fleet.create(slot);
  return { world, fleet, trouble, losses, witness, background, rollCall };
};

/** No more trouble from now on. */
export const endTrouble = async ({ trouble, losses, fleet }: Life): Promise<void> => {
  await Promise.all([trouble.end(), losses.end()]);
  await fleet.hideSecret(false);
};

/** What differs from what the Proxies describe, or is left of those that are gone. */
export const wrongNow = async ({ world, fleet }: Life): Promise<readonly string[]> => {
  const found = await differences(world, fleet);
  return found.length > 0 ? found : leaks(world, fleet);
};

/** What must never be and was. */
export const violationsOf = (
  { world, fleet, witness, background, rollCall }: Life,
  limits: LedgerLimits,
): readonly string[] => [
  ...witness.violations,
  ...background.listed(),
  ...wrongDeletions(world, fleet, witness),
  ...wrongCalls(world, rollCall, limits),
];

export const stopWatching = async ({ background, rollCall, witness }: Life): Promise<void> => {
  await background.stop();
  await rollCall.stop();
  await witness.stop();
};

type Happening = readonly [
  weight: number,
  name: string,
  happen: (random: Random) => Promise<string> | string,
];

const onOne =
  ({ slots }: Fleet, act: (slot: Slot) => Promise<void>) =>
  async (random: Random): Promise<string> => {
    const some = slots.filter(({ phase }) => phase === 'present');
    if (some.length === 0) return 'nobody';
    const slot = random.pick(some);
    await act(slot);
    return slot.name;
  };

const create =
  ({ fleet, world }: Life) =>
  async (random: Random): Promise<string> => {
    const free = fleet.slots.filter(({ phase }) => phase !== 'present');
    if (free.length === 0) return 'all are there';
    const slot = random.pick(free);
    if (slot.phase === 'deleting' && (await world.get(slot.name))) return `${slot.name} is not gone yet`;
    await fleet.create(slot);
    return slot.name;
  };

/** Everything that may happen to it, and how often. */
export const happeningsOf = (life: Life): readonly Happening[] => {
  const { fleet, trouble, losses } = life;
  return [
    [6, 'create', create(life)],
    [6, 'edit of a machine', onOne(fleet, (slot) => fleet.editMachine(slot))],
    [4, 'other edit', onOne(fleet, (slot) => fleet.editRest(slot))],
    [2, 'delete', onOne(fleet, (slot) => fleet.remove(slot))],
    [1.5, 'taken away', onOne(fleet, (slot) => losses.takeAway(slot))],
    [1, 'forgotten', onOne(fleet, (slot) => losses.forget(slot))],
    [1, 'other credentials', () => fleet.changeSecret().then(() => 'all that use them')],
    [0.3, 'Secret without its label', () => fleet.hideSecret(true).then(() => 'all that use it')],
    [1, 'kill', () => trouble.kill()],
    [1, 'kill of gc', () => losses.kill()],
    [6, 'fault', () => trouble.fault()],
    [1, 'dark zone', () => trouble.darkZone()],
    [1, 'outage of the cluster', () => losses.outage()],
    [1, 'overlapping runs', () => losses.overlap()],
    [3, 'machine', () => trouble.machine()],
    [5, 'messages', () => trouble.messages()],
  ];
};

/** Lets one of them happen; its name and what became of it. */
export const happen = async (life: Life, random: Random): Promise<readonly [name: string, what: string]> => {
  const list = happeningsOf(life);
  let left = random.next() * list.reduce((sum, [weight]) => sum + weight, 0);
  const [, name, act] = list.find(([weight]) => (left -= weight) < 0) ?? random.pick(list);
  return [name, await act(random)];
};
