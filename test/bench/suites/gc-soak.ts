/** Isolation and leaks: two installations, hundreds of Proxies each, hours of trouble. `BENCH_MINUTES` says how many. */

import { soak } from '#test/unit/gc/soak/soak.ts';

import type { Bench, Figure } from '../figure.ts';

const none = (what: string, value: number): Figure => ({
  goal: 16,
  what,
  value,
  target: { atMost: 0 },
  unit: '',
});

export const bench: Bench = async ({ say, seed }) => {
  const minutes = Number(process.env['BENCH_MINUTES'] ?? 3000);
  const proxies = Number(process.env['BENCH_OBJECTS'] ?? 300);
  const { wrong, leaks, done } = await soak({ seed, proxies, minutes });
  for (const line of [...wrong, ...leaks].slice(0, 20)) say(`  ${line}`);
  say(`  ${JSON.stringify(done)}`);
  return [
    none(`wrong deletions in ${minutes} minutes of trouble, 2 × ${proxies} Proxies`, wrong.length),
    none('machines, records, sightings and unconverged Proxies left once it is over', leaks.length),
    { goal: 16, what: 'deletions by gc', value: done.deletedByGc, target: { atLeast: 1 }, unit: '' },
    { goal: 16, what: 'crashes of passes', value: done.crashes, target: { atLeast: 1 }, unit: '' },
    { goal: 16, what: 'runs that froze', value: done.frozen, target: { atLeast: 1 }, unit: '' },
  ];
};
