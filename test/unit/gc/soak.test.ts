import { randomInt } from 'node:crypto';

import { expect, test } from 'vitest';

import { soak } from './soak/soak.ts';

test('two installations through hours of trouble: nothing is deleted wrongly, nothing is left (B2, K5, K6, rows 47, 79, 81, 82)', async () => {
  const seed = randomInt(2 ** 31);
  console.info(`seed ${seed}`);
  const { wrong, leaks, done } = await soak({ seed, proxies: 40, minutes: 150 });
  expect(wrong).toEqual([]);
  expect(leaks).toEqual([]);
  console.info(JSON.stringify(done));
  // It was a bad life: all of this has happened.
  expect(Math.min(...Object.values(done))).toBeGreaterThan(0);
}, 60_000);
