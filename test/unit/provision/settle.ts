/** Nudges until a Proxy has come to rest, and what a test looks at then. */

import { judge } from './parts.ts';
import { call } from './passes.ts';
import { editSpec, type World } from './world.ts';

export const count = (world: World, name: string): number =>
  world.calls.filter((each) => each === name).length;
export const condition = (world: World, type: string) =>
  world.proxy?.status?.conditions?.find((each) => each.type === type);
export const setType = (world: World, machineType: string): void =>
  editSpec(world, (spec) => (spec.gcp ? { ...spec, gcp: { ...spec.gcp, machineType } } : spec));

/** Nudges as gc and health send them, until nothing waits any more. */
export const settle = async (world: World): Promise<void> => {
  for (let round = 0; round < 60; round += 1) {
    await call(world);
    const { wakeAt } = world.record?.value ?? {};
    const unjudged = world.record?.value.serving?.verdict.state !== 'Healthy' || world.record.value.candidate;
    judge(world, 'Healthy');
    if (wakeAt === undefined && !unjudged) break;
    if (!world.proxy) break;
    world.now = Math.max(world.now, wakeAt ?? 0) + 1;
  }
  await call(world);
};
