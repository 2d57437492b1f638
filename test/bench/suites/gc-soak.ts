/**
 * Isolation and leaks, two installations in one project. `BENCH_PARTS=stack`: the whole of both on real parts, with
 * `BENCH_PROXIES` (200) each and `BENCH_EVENTS` (1500) things that happen. `BENCH_PARTS=months`: gc's own code on a simulated
 * cloud, `BENCH_MINUTES` (3000) of trouble for `BENCH_OBJECTS` (300) Proxies each.
 */

import { TWO } from '#test/chaos/installations.ts';
import { soak } from '#test/unit/gc/soak/soak.ts';

import type { Bench, Figure } from '../figure.ts';
import { measureParts, type Part, type Parts } from '../parts.ts';
import { soakStack } from '../soak-stack.ts';

const setting = (key: string, otherwise: number): number => Number(process.env[key] ?? otherwise);

const none = (what: string, value: number): Figure => ({
  goal: 16,
  what,
  value,
  target: { atMost: 0 },
  unit: '',
});

const stack: Part<undefined> = (_, { seed, say }) =>
  soakStack({
    ids: TWO,
    proxies: setting('BENCH_PROXIES', 200),
    events: setting('BENCH_EVENTS', 1_500),
    goal: 16,
    seed,
    say,
  });

const months: Part<undefined> = async (_, { say, seed }) => {
  const minutes = setting('BENCH_MINUTES', 3_000);
  const proxies = setting('BENCH_OBJECTS', 300);
  const { wrong, leaks, done } = await soak({ seed, proxies, minutes });
  for (const line of [...wrong, ...leaks].slice(0, 20)) say(`  ${line}`);
  say(`  ${JSON.stringify(done)}`);
  return [
    none(`wrong deletions in ${minutes} minutes of trouble, 2 × ${proxies} Proxies`, wrong.length),
    none('machines, disks, records, sightings and unconverged Proxies left once it is over', leaks.length),
    { goal: 16, what: 'deletions by gc', value: done.deletedByGc, target: { atLeast: 1 }, unit: '' },
    { goal: 16, what: 'crashes of passes', value: done.crashes, target: { atLeast: 1 }, unit: '' },
    { goal: 16, what: 'runs that froze', value: done.frozen, target: { atLeast: 1 }, unit: '' },
  ];
};

const PARTS: Parts<undefined> = { stack, months };

export const bench: Bench = (context) => measureParts(PARTS, undefined, context);
