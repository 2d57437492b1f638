/** A run: people edit and delete, everything goes wrong at once, then nothing does, and the world has to be right again. */

import { pause } from '#shared/app/wait.ts';
import { condition, type World } from '#test/e2e/world.ts';

import { startBackground } from './crawlers.ts';
import { makeFleet, type Fleet } from './fleet.ts';
import { differences, wrongDeletions } from './judge.ts';
import { seeded, type Random } from './random.ts';
import { makeTrouble, type Trouble } from './trouble.ts';
import { startWitness } from './witness.ts';

export interface ChaosOptions {
  readonly seed: number;
  readonly proxies: number;
  /** How many things happen, and the time after which no more do. */
  readonly events: number;
  readonly longestMs: number;
  /** The longest pause between two of them. */
  readonly pauseMs: number;
  /** How long the world may take to be right again. */
  readonly settleMs: number;
  /** Faults too that the product waits out for minutes. */
  readonly patient: boolean;
  readonly say: (line: string) => void;
}

export interface ChaosReport {
  /** What must never happen and did. */
  readonly violations: readonly string[];
  /** What was not as the Proxies describe when the time was up. */
  readonly differences: readonly string[];
  readonly settledMs: number;
  readonly counts: Readonly<Record<string, number>>;
}

type Happening = readonly [weight: number, name: string, (random: Random) => Promise<string>];

const happenings = (fleet: Fleet, trouble: Trouble, world: World): readonly Happening[] => {
  const present = () => fleet.slots.filter(({ phase }) => phase === 'present');
  const onOne =
    (act: (slot: Fleet['slots'][number]) => Promise<void>) =>
    async (random: Random): Promise<string> => {
      const some = present();
      if (some.length === 0) return 'nobody';
      const slot = random.pick(some);
      await act(slot);
      return slot.name;
    };
  const create = async (random: Random): Promise<string> => {
    const free = fleet.slots.filter(({ phase }) => phase !== 'present');
    if (free.length === 0) return 'all are there';
    const slot = random.pick(free);
    if (slot.phase === 'deleting' && (await world.get(slot.name))) return `${slot.name} is not gone yet`;
    await fleet.create(slot);
    return slot.name;
  };
  return [
    [6, 'create', create],
    [6, 'edit of a machine', onOne((slot) => fleet.editMachine(slot))],
    [4, 'other edit', onOne((slot) => fleet.editRest(slot))],
    [2, 'delete', onOne((slot) => fleet.remove(slot))],
    [1, 'other credentials', async () => fleet.changeSecret().then(() => 'all that use them')],
    [0.3, 'Secret without its label', async () => fleet.hideSecret(true).then(() => 'all that use it')],
    [1, 'kill', async () => trouble.kill()],
    [6, 'fault', async () => trouble.fault()],
    [1, 'dark zone', () => trouble.darkZone()],
    [3, 'machine', () => trouble.machine()],
    [5, 'messages', () => trouble.messages()],
  ];
};

const choose = (list: readonly Happening[], random: Random): Happening => {
  let left = random.next() * list.reduce((sum, [weight]) => sum + weight, 0);
  return list.find(([weight]) => (left -= weight) < 0) ?? random.pick(list);
};

/** Trouble that begins before anything is there meets nothing. */
const untilSomeAreReady = async (world: World, fleet: Fleet, timeoutMs: number): Promise<void> => {
  const begun = performance.now();
  const some = fleet.slots.filter(({ phase }) => phase === 'present').length / 2;
  while (performance.now() - begun < timeoutMs) {
    const ready = (await world.list()).filter((proxy) => condition(proxy, 'Ready', 'True'));
    if (ready.length >= some) return;
    await pause(500);
  }
};

const untilRight = async (
  world: World,
  fleet: Fleet,
  settleMs: number,
): Promise<{ readonly differences: readonly string[]; readonly settledMs: number }> => {
  const begun = performance.now();
  for (;;) {
    const found = await differences(world, fleet);
    const settledMs = performance.now() - begun;
    if (found.length === 0 || settledMs > settleMs) return { differences: found, settledMs };
    await pause(1_000);
  }
};

export const runChaos = async (world: World, options: ChaosOptions): Promise<ChaosReport> => {
  const { seed, say } = options;
  const random = seeded(seed);
  const fleet = makeFleet(world, options.proxies, random);
  const trouble = makeTrouble(world, fleet, random, options.patient);
  const witness = startWitness(world.stack.env['GOOGLE_CLOUD_PROJECT'] ?? '');
  await fleet.changeSecret();
  const background = startBackground(world, witness);
  const counts: Record<string, number> = {};
  const list = happenings(fleet, trouble, world);
  try {
    for (const slot of fleet.slots.slice(0, Math.ceil(options.proxies * 0.8))) await fleet.create(slot);
    await untilSomeAreReady(world, fleet, options.settleMs);
    say('some are Ready');
    const begun = performance.now();
    for (let event = 0; event < options.events && performance.now() - begun < options.longestMs; event += 1) {
      const [, name, happen] = choose(list, random);
      counts[name] = (counts[name] ?? 0) + 1;
      say(`${event} ${name}: ${await happen(random)}`);
      await pause(random.int(options.pauseMs));
    }
    await trouble.end();
    await fleet.hideSecret(false);
    say('nothing goes wrong any more');
    const settled = await untilRight(world, fleet, options.settleMs);
    await background.stop();
    return {
      ...settled,
      violations: [...witness.violations, ...background.listed(), ...wrongDeletions(world, fleet, witness)],
      counts: {
        ...counts,
        leases: background.leases(),
        lists: background.lists(),
        'leases on machines that had just died': background.onDead(),
        'leases judged': witness.judged(),
      },
    };
  } finally {
    await background.stop();
    await witness.stop();
  }
};
