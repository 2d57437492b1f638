/**
 * Goal 13: messages per change, and what a long life costs a watcher. `BENCH_OBJECTS=1000 BENCH_RECONNECTS=100` measures
 * less of both.
 */

import type { Bench, BenchContext, Figure } from '../figure.ts';
import { heapInUse } from '../heap.ts';
import { startWatcherWorld, until, type WatcherWorld, type Watching } from '../watcher/world.ts';

const MANY = 'many';
const FEW = 'few';
/** Proxies that live while connections come and go. */
const FEW_COUNT = 200;

const figure = (what: string, value: number, atMost: number, unit = ''): Figure => ({
  goal: 13,
  what,
  value,
  target: { atMost },
  unit,
});

/** Exactly one each: neither more nor fewer. */
const exactly = (what: string, value: number, each: number): readonly Figure[] => [
  figure(`messages per ${what}`, value / each, 1),
  { goal: 13, what: `messages per ${what}`, value: value / each, target: { atLeast: 1 }, unit: '' },
];

/** Runs a watcher for as long as `work` takes; its messages for Proxies that are not markers. */
const during = async (
  world: WatcherWorld,
  namespace: string,
  work: (watching: Watching) => Promise<void>,
): Promise<number> => {
  const watching = await world.watch(namespace);
  try {
    await work(watching);
    await watching.caughtUp();
    return watching.sent();
  } finally {
    await watching.stop();
  }
};

const amplification = async (
  world: WatcherWorld,
  objects: number,
  { say }: BenchContext,
): Promise<readonly Figure[]> => {
  await world.fill(MANY, objects);
  say('  they are there: a start, status writes, spec changes');
  const some = Math.min(1000, objects);
  const restart = await during(world, MANY, () => Promise.resolve());
  const status = await during(world, MANY, () =>
    world.each(some, (name) => world.dealWith(MANY, name, 'AnotherReason')),
  );
  const spec = await during(world, MANY, () =>
    world.each(some, async (name) => {
      await world.edit(MANY, name, 7);
      for (const reason of ['First', 'Second', 'Third', 'Fourth']) await world.dealWith(MANY, name, reason);
    }),
  );
  return [
    figure(`messages per start, nothing changed, ${objects} Proxies`, restart, 0),
    figure(`messages for ${some} status writes`, status, 0),
    ...exactly(`spec change, each followed by four status writes, of ${some}`, spec, some),
  ];
};

/** What happens while nobody watches, in the two ways in which that can be. */
const absence = async (world: WatcherWorld): Promise<readonly Figure[]> => {
  const lost = 50;
  const cutOff = await during(world, FEW, async (watching) => {
    world.link.refuse();
    await world.each(lost, (name) => world.remove(FEW, name));
    world.link.heal();
    await watching.caughtUp();
  });
  // Those that go already are not dealt with: a start sends them again, since their effect has not shown.
  await world.each(lost, (name) => world.dealWith(FEW, name));
  const away = await during(world, FEW, () => Promise.resolve());
  await world.each(2 * lost, async (name) => {
    if (Number(name.slice(2)) >= lost) await world.remove(FEW, name);
  });
  const restarted = await during(world, FEW, () => Promise.resolve());
  await world.each(2 * lost, (name) => world.dealWith(FEW, name));
  return [
    ...exactly(`deletion while the connection was away, of ${lost}`, cutOff, lost),
    figure('messages per start, with deletions dealt with', away, 0),
    ...exactly(`deletion while no watcher ran, of ${lost}`, restarted, lost),
  ];
};

const expiry = async (world: WatcherWorld): Promise<readonly Figure[]> => {
  const times = 20;
  let expired = 0;
  const watching = await world.watch(FEW, (cluster) => ({
    ...cluster,
    async *watchProxies(options) {
      const tooOld = expired < times ? { ...options, resourceVersion: '1' } : options;
      for await (const event of cluster.watchProxies(tooOld)) {
        if (event.kind === 'expired') expired += 1;
        yield event;
      }
    },
  }));
  try {
    await until('the versions have expired', () => expired === times);
    await watching.caughtUp();
    return [figure(`messages for ${times} lists after a real 410`, watching.sent(), 0)];
  } finally {
    await watching.stop();
  }
};

const churn = (world: WatcherWorld, count: number, from: number): Promise<void> =>
  world.each(count, async (name) => {
    const own = `c-${from}-${name}`;
    await world.create(FEW, own);
    await world.remove(FEW, own);
  });

const reconnect = async (world: WatcherWorld, times: number): Promise<void> => {
  for (let turn = 0; turn < times; turn += 1) {
    const before = world.link.attempts();
    world.link.cut();
    await until('the watch is there again', () => world.link.attempts() >= before + 2);
  }
};

/** Nothing is remembered of those that are gone. */
const settled = (watching: Watching): Promise<void> =>
  until('what is gone is forgotten', () => {
    const { pending, proxies } = watching.sizes();
    return pending === 0 && proxies === FEW_COUNT;
  });

const flatness = async (
  world: WatcherWorld,
  objects: number,
  reconnects: number,
): Promise<readonly Figure[]> => {
  const watching = await world.watch(FEW);
  try {
    // Warm: what a process takes once is there.
    await churn(world, 200, 0);
    await reconnect(world, 20);
    await watching.caughtUp();
    await settled(watching);
    const [heap, sockets, before] = [heapInUse(), world.link.open(), watching.sent()];
    await reconnect(world, reconnects);
    await watching.caughtUp();
    const sent = watching.sent() - before;
    await churn(world, objects, 1);
    await watching.caughtUp();
    await settled(watching);
    return [
      figure(`messages for ${reconnects} reconnects with ${FEW_COUNT} Proxies`, sent, 0),
      figure(
        `heap after ${objects} Proxies that came and went and ${reconnects} reconnects, to before`,
        heapInUse() / heap,
        1.1,
        'x',
      ),
      figure('sockets more than before (both ends counted)', world.link.open() - sockets, 0),
    ];
  } finally {
    await watching.stop();
  }
};

export const bench: Bench = async (context) => {
  const { say } = context;
  const objects = Number(process.env['BENCH_OBJECTS'] ?? 10_000);
  const reconnects = Number(process.env['BENCH_RECONNECTS'] ?? 500);
  const world = await startWatcherWorld();
  try {
    say(`  ${objects} Proxies are made`);
    const figures = [...(await amplification(world, objects, context))];
    await world.fill(FEW, FEW_COUNT);
    say('  deletions while nobody watches, and expired versions');
    figures.push(...(await absence(world)), ...(await expiry(world)));
    say(`  ${reconnects} reconnects, ${objects} Proxies that come and go`);
    figures.push(...(await flatness(world, objects, reconnects)));
    return figures;
  } finally {
    await world.stop();
  }
};
