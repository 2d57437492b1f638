/** A run: people edit and delete, everything goes wrong at once, then nothing does, and the world has to be right again. */

import { pause } from '#shared/app/wait.ts';
import { condition, type World } from '#test/e2e/world.ts';

import { makeBystanders } from './bystanders.ts';
import { gcDeletions, type LedgerLimits } from './ledger.ts';
import { beginLife, endTrouble, happen, stopWatching, violationsOf, wrongNow, type Life } from './life.ts';
import { releaseFrozen } from './operator.ts';
import { seeded } from './random.ts';

export interface ChaosOptions {
  readonly seed: number;
  /** Of each installation. */
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
  readonly limits: LedgerLimits;
  readonly say: (line: string) => void;
}

export interface ChaosReport {
  /** What must never happen and did. */
  readonly violations: readonly string[];
  /** What was not as the Proxies describe when the time was up, and what was left of those that are gone. */
  readonly differences: readonly string[];
  readonly settledMs: number;
  readonly counts: Readonly<Record<string, number>>;
}

/** Trouble that begins before anything is there meets nothing. */
const untilSomeAreReady = async ({ world, fleet }: Life, timeoutMs: number): Promise<void> => {
  const begun = performance.now();
  const some = fleet.slots.filter(({ phase }) => phase === 'present').length / 2;
  while (performance.now() - begun < timeoutMs) {
    const ready = (await world.list()).filter((proxy) => condition(proxy, 'Ready', 'True'));
    if (ready.length >= some) return;
    await pause(500);
  }
};

type Counts = Record<string, number>;

const count = (counts: Counts, what: string, by = 1): void => {
  counts[what] = (counts[what] ?? 0) + by;
};

const makeTroubleOf = async (
  lives: readonly Life[],
  options: ChaosOptions,
  counts: Counts,
): Promise<void> => {
  const { seed, events, longestMs, pauseMs, say } = options;
  const random = seeded(seed);
  const begun = performance.now();
  for (let event = 0; event < events && performance.now() - begun < longestMs; event += 1) {
    const life = random.pick(lives);
    const [name, what] = await happen(life, random);
    count(counts, name);
    say(`${event} ${life.world.installation.id} ${name}: ${what}`);
    await pause(random.int(pauseMs));
  }
  const [first] = lives;
  if (first) say(await first.losses.disaster());
};

const release = async (lives: readonly Life[], counts: Counts): Promise<void> => {
  for (const { world } of lives) {
    const reasons = await releaseFrozen(world);
    for (const reason of reasons) count(counts, `released: ${reason}`);
  }
};

const RELEASE_EVERY_MS = 5_000;

const untilRight = async (
  lives: readonly Life[],
  settleMs: number,
  counts: Counts,
): Promise<{ readonly differences: readonly string[]; readonly settledMs: number }> => {
  const begun = performance.now();
  let releasedAt = begun;
  for (;;) {
    const found = (await Promise.all(lives.map(wrongNow))).flat();
    const now = performance.now();
    if (found.length === 0 || now - begun > settleMs) return { differences: found, settledMs: now - begun };
    if (now - releasedAt > RELEASE_EVERY_MS) {
      await release(lives, counts);
      releasedAt = now;
    }
    await pause(1_000);
  }
};

const sum = (lives: readonly Life[], of: (life: Life) => number): number =>
  lives.reduce((total, life) => total + of(life), 0);

/** The installations of `worlds`, which share everything but their namespaces, through one run. */
export const runChaos = async (worlds: readonly World[], options: ChaosOptions): Promise<ChaosReport> => {
  const { seed, proxies, patient, limits, settleMs, say } = options;
  const touched = await makeBystanders(worlds);
  const share = worlds.length;
  const lives = await Promise.all(
    worlds.map((world, index) => beginLife(world, seeded(seed + index), { proxies, patient, share })),
  );
  const counts: Counts = {};
  try {
    await Promise.all(lives.map((life) => untilSomeAreReady(life, settleMs)));
    say('some are Ready');
    await makeTroubleOf(lives, options, counts);
    for (const life of lives) await endTrouble(life);
    say('nothing goes wrong any more');
    const settled = await untilRight(lives, settleMs, counts);
    await Promise.all(lives.map(({ background }) => background.stop()));
    return {
      ...settled,
      violations: [...lives.flatMap((life) => violationsOf(life, limits)), ...touched()],
      counts: {
        ...counts,
        leases: sum(lives, ({ background }) => background.leases()),
        lists: sum(lives, ({ background }) => background.lists()),
        'leases on machines that had just died': sum(lives, ({ background }) => background.onDead()),
        'leases judged': sum(lives, ({ witness }) => witness.judged()),
        'deleted by gc': sum(lives, ({ world }) => gcDeletions(world)),
      },
    };
  } finally {
    await Promise.all(lives.map(stopWatching));
  }
};
