import { beforeEach, describe, expect, inject, it } from 'vitest';

import { openFleet, type Fleet } from '#test/bench/leases/world.ts';
import { seeded } from '#test/bench/leases/random.ts';
import { racyControl } from '#test/bench/leases/racy-control.ts';
import { soak } from '#test/bench/leases/soak.ts';

let fleet: Fleet;

beforeEach(() => {
  process.env['FIRESTORE_EMULATOR_HOST'] = inject('emulators').firestore;
  fleet = openFleet(`t${crypto.randomUUID().replaceAll('-', '').slice(0, 12)}`);
  return () => fleet.close();
});

describe('many grants', () => {
  it('with instances killed, replies lost, clocks off, slots shrinking and endpoints withdrawn: never one too many, none lost (rows 28, 36, 37, 74, 76, 77; B1)', async () => {
    const seed = Date.now() % 2 ** 31;
    console.log(`seed ${seed}`);
    const options = { fleet, proxies: 4, maxLeases: 5, instances: 3, workers: 12, random: seeded(seed) };
    const result = await soak({ ...options, grants: 300, maxMs: 8_000 });
    expect(result).toMatchObject({ overAllocations: 0, onWithdrawn: 0, lostSlots: 0 });
    expect(result.grants).toBeGreaterThan(0);
  }, 180_000);

  it('by a reader that writes blindly are found out', async () => {
    expect(await racyControl(fleet, 16)).toBeGreaterThan(0);
  });
});
