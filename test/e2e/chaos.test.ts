import { cp } from 'node:fs/promises';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { runChaos } from '#test/chaos/run.ts';

import { startWorld, type World } from './world.ts';

const seed = Number(process.env['CHAOS_SEED'] ?? Date.now() % 2 ** 31);

const isLog = (path: string): boolean => !/\/etcd|\.sock$/u.test(path);

let world: World;

beforeAll(async () => {
  world = await startWorld('chaos', { scheduled: false });
});
afterAll(async () => {
  await world.stack.stop();
});

describe('everything at once', () => {
  test('B1, W2, W4, K3: edits, kills, faults and repeated messages end with what the Proxies describe', async () => {
    console.log(`CHAOS_SEED=${seed}`);
    const said: string[] = [];
    const report = await runChaos(world, {
      seed,
      proxies: 16,
      events: 100,
      longestMs: 40_000,
      pauseMs: 250,
      settleMs: 300_000,
      patient: false,
      say: (line) => void said.push(`${new Date().toISOString().slice(14, 23)} ${line}`),
    });
    console.log(JSON.stringify({ ...report.counts, settledMs: Math.round(report.settledMs) }));
    const wrong = [...report.violations, ...report.differences];
    if (wrong.length > 0) console.log(`CHAOS_SEED=${seed}\n${said.join('\n')}`);
    const kept = process.env['CHAOS_LOGS'];
    if (kept !== undefined) await cp(world.stack.runDir, kept, { recursive: true, filter: isLog });
    expect(wrong).toEqual([]);
    expect(report.counts['leases judged']).toBeGreaterThan(20);
  }, 600_000);
});
