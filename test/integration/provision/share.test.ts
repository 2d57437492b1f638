import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { GCP } from '../proxies.ts';
import { condition, startProvision, type Provision } from './fixture.ts';

let provision: Provision;

beforeAll(async () => {
  provision = await startProvision();
  // Loads the client library, which takes its time.
  await provision.provider.get('nobody', 'europe-west1-b');
});
afterAll(async () => {
  await provision.stop();
});

const SHARE = { maxReplacingPercent: 40 };
const nudge = (name: string) => provision.nudge(name, SHARE);
const bad = { gcp: { machineType: 'e2-small' } };
const reasonsOf = (names: readonly string[]) =>
  Promise.all(names.map(async (name) => condition(await provision.get(name), 'Ready')?.reason));
const machineCount = () => provision.compute.standIn.control.instances().length;

describe('a template that nobody gets healthy with', () => {
  test('reaches its share of the fleet and stops there', async () => {
    const names = await Promise.all(Array.from({ length: 5 }, () => provision.apply(GCP)));
    await Promise.all(names.map(nudge));
    await Promise.all(names.map((name) => provision.judge(name, 'Healthy')));
    await Promise.all(names.map(nudge));
    expect(await reasonsOf(names)).toEqual(names.map(() => 'Ready'));

    // All at the same moment: counting before asking would let all of them through.
    await Promise.all(names.map((name) => provision.edit(name, bad)));
    await Promise.all(names.map(nudge));
    const after = await reasonsOf(names);
    expect(after.filter((reason) => reason === 'Replacing')).toHaveLength(2);
    expect(after.filter((reason) => reason === 'ReplacementQueued')).toHaveLength(3);
    expect(machineCount()).toBe(7);

    const replaced = names.filter((_, index) => after[index] === 'Replacing');
    const queued = names.filter((_, index) => after[index] === 'ReplacementQueued');
    const waiting = queued.at(0) ?? '';
    const message = condition(await provision.get(waiting), 'Ready')?.message ?? '';
    expect(replaced.some((name) => message.includes(`${provision.namespace}/${name}`))).toBe(true);
    expect(condition(await provision.get(waiting), 'Healthy')?.status).toBe('True');
    expect((await provision.record(waiting))?.wakeAt).toBeLessThanOrEqual(Date.now() + 60_000);

    // The candidates never answer: their places stay taken, nobody follows.
    await Promise.all(replaced.map((name) => provision.judge(name, 'Unhealthy')));
    await Promise.all(replaced.map(nudge));
    await Promise.all(queued.map(nudge));
    expect(machineCount()).toBe(7);

    // Who wants something else does not wait for them, nor for those that do.
    const other = waiting;
    const same = queued.slice(1);
    await provision.edit(other, { revision: 'another' });
    await nudge(other);
    expect(await reasonsOf([other])).toEqual(['Replacing']);
    await provision.judge(other, 'Healthy');
    await nudge(other);
    expect(await reasonsOf([other])).toEqual(['Ready']);
    expect(machineCount()).toBe(7);

    // As soon as one is healthy, exactly one follows.
    await provision.judge(replaced[0] ?? '', 'Healthy');
    await nudge(replaced[0] ?? '');
    await Promise.all(same.map(nudge));
    const later = await reasonsOf(same);
    expect(later).toHaveLength(2);
    expect(new Set(later)).toEqual(new Set(['Replacing', 'ReplacementQueued']));
  }, 180_000);
});
