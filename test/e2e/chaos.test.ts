import { cp } from 'node:fs/promises';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { TWO, startShared } from '#test/chaos/installations.ts';
import { runChaos } from '#test/chaos/run.ts';

import type { World } from './world.ts';

const seed = Number(process.env['CHAOS_SEED'] ?? Date.now() % 2 ** 31);
const LIMITS = { minAgeMs: 16_000, skewMs: 6_000 };

const isLog = (path: string): boolean => !/\/etcd|\.sock$/u.test(path);

let worlds: readonly World[];

beforeAll(async () => {
  console.log(`CHAOS_SEED=${seed}`);
  worlds = await startShared({ ids: TWO, seed, limits: LIMITS, ranges: 1 });
});
afterAll(async () => {
  await worlds[0]?.stack.stop();
});

describe('everything at once, in two installations that share a project and a cluster', () => {
  test('B1, B2, W2, W4, K3, K5, K6, rows 79, 81, 82: nothing wrong is done, and what the Proxies describe is all that is left', async () => {
    const said: string[] = [];
    const report = await runChaos(worlds, {
      seed,
      proxies: 10,
      events: 110,
      longestMs: 40_000,
      pauseMs: 250,
      settleMs: 180_000,
      patient: false,
      limits: LIMITS,
      say: (line) => void said.push(`${new Date().toISOString().slice(14, 23)} ${line}`),
    });
    console.log(JSON.stringify({ ...report.counts, settledMs: Math.round(report.settledMs) }));
    const wrong = [...report.violations, ...report.differences];
    if (wrong.length > 0) console.log(`CHAOS_SEED=${seed}\n${said.join('\n')}`);
    const kept = process.env['CHAOS_LOGS'];
    const runDir = worlds[0]?.stack.runDir;
    if (kept !== undefined && runDir !== undefined)
      await cp(runDir, kept, { recursive: true, filter: isLog });
    expect(wrong).toEqual([]);
    expect(report.counts['leases judged']).toBeGreaterThan(20);
    expect(report.counts['deleted by gc']).toBeGreaterThan(0);
  }, 600_000);
});
