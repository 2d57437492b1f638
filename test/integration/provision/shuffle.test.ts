import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import {
  duplicated,
  permutations,
  runShuffle,
  type Shuffle,
  type ShuffleWorld,
} from '#test/bench/provision/shuffle.ts';
import { seeded } from '#test/chaos/random.ts';

import { startProvision, type Provision } from './fixture.ts';

const ORDERS = 8;

let provision: Provision;

beforeAll(async () => {
  provision = await startProvision();
  // Loads the client library, which takes its time.
  await provision.provider.get('nobody', 'europe-west1-b');
});
afterAll(async () => {
  await provision.stop();
});

const worldOf = (name: string): ShuffleWorld => ({
  control: provision.compute.standIn.control,
  create: async (_, spec) => {
    await provision.apply(spec, name);
    return (await provision.get(name))?.metadata.uid ?? '';
  },
  edit: (_, spec) => provision.edit(name, spec),
  remove: () => provision.remove(name),
  isThere: async () => (await provision.get(name)) !== undefined,
  judge: async (_, state) => {
    const record = await provision.record(name);
    if (!record?.serving && !record?.candidate) return false;
    await provision.judge(name, state);
    return true;
  },
  push: async () => (await provision.nudge(name)).status,
  record: () => provision.record(name),
});

describe('messages of one Proxy', () => {
  test('rows 14, 17: in any order and twice, they end in the newest generation with one create call for each that needs one', async () => {
    const seed = Number(process.env['SHUFFLE_SEED'] ?? Date.now() % 2 ** 31);
    console.log(`SHUFFLE_SEED=${seed}`);
    const random = seeded(seed);
    const orders = random.shuffled(permutations(6)).slice(0, ORDERS);
    const shuffles = orders.map((order, index): Shuffle => ({
      deliveries: duplicated(order, random),
      concurrent: false,
      ending: index % 2 === 0 ? 'cordoned' : 'deleted',
    }));
    const wrong = await Promise.all(
      shuffles.map((shuffle, index) => runShuffle(worldOf(`s-${index}`), `s-${index}`, shuffle)),
    );
    expect(wrong.filter((line) => line !== undefined)).toEqual([]);
  }, 300_000);
});
