import { describe, expect, it } from 'vitest';

import { run } from '../../../functions/provision/run.ts';

import { judge, partsOf } from './parts.ts';
import { settle } from './settle.ts';
import { REF, newWorld, type World } from './world.ts';

/** A Proxy that serves, while messages about it reach a cluster that does not have it. */
const repointed = async (clusterId: string): Promise<World> => {
  const world = newWorld();
  await settle(world);
  judge(world, 'Healthy');
  await settle(world);
  expect(world.record?.value.serving).toBeDefined();
  world.proxy = undefined;
  world.clusterId = clusterId;
  return world;
};

const refused = (): Promise<string> => Promise.reject(new Error('403'));

describe('a Proxy that the cluster does not have', () => {
  it('stays as it is when another cluster than the remembered one says so (B2)', async () => {
    const world = await repointed('cluster-2');
    const { record } = world;
    const calls = world.calls.length;
    expect(await run(partsOf(world), REF)).toBe('done');
    expect(world.record).toEqual(record);
    expect(world.calls).toHaveLength(calls);
  });

  it('keeps its credentials there too when its record is lost', async () => {
    const world = await repointed('cluster-2');
    world.record = undefined;
    world.credentials.set('e-1', {});
    expect(await run(partsOf(world), REF)).toBe('done');
    expect([...world.credentials.keys()]).toContain('e-1');
  });

  it('is gone when the remembered one says so, or none is remembered yet', async () => {
    const same = await repointed('cluster-1');
    await run(partsOf(same), REF);
    expect(same.record?.value.gone).toBe(true);
    const first = await repointed('cluster-2');
    await run({ ...partsOf(first), rememberedCluster: async () => undefined }, REF);
    expect(first.record?.value.gone).toBe(true);
  });

  it('is not taken for gone while it is not known which cluster answered (row 82)', async () => {
    const world = await repointed('cluster-1');
    const parts = partsOf(world);
    const cluster = { ...parts.cluster, clusterId: refused };
    await expect(run({ ...parts, cluster }, REF)).rejects.toThrow('403');
    expect(world.record?.value.gone).toBe(false);
  });
});
