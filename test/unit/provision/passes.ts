/** Calls of provision in a world whose clock stands still until a pass waits: what takes minutes there takes none here. */

import type { Left } from '../../../functions/provision/act.ts';
import { newMemory, noteResult } from '../../../functions/provision/memory.ts';
import { onePass } from '../../../functions/provision/pass.ts';
import type { Next } from '../../../functions/provision/plan.ts';
import { hasCode } from '#shared/app/errors.ts';

import { REF } from './builders.ts';
import { awaitOperation } from './fake-cloud.ts';
import { partsOf } from './parts.ts';
import { Crash, type World } from './world.ts';

const BUDGET_MS = 120_000;

interface Passed {
  readonly next: Next;
  readonly left?: Left | undefined;
}

const pass = async (
  world: World,
  memory: ReturnType<typeof newMemory>,
  before: Left | undefined,
): Promise<Passed> => {
  const patches = world.calls.filter((call) => call === 'patchStatus').length;
  const { plan, left } = await onePass(partsOf(world), REF, memory, before);
  world.calls.push(`pass:${plan.because}`);
  const patched = world.calls.filter((call) => call === 'patchStatus').length - patches;
  if (patched > 1) world.violations.push('two status patches in one pass');
  return { next: plan.next, left };
};

const CRASHED = { crashed: true } as const;

/** What `run` makes of an error: again when the world moved on, a refusal when something is away. */
const afterError = (error: unknown): Passed | typeof CRASHED => {
  if (error instanceof Crash) return CRASHED;
  if (hasCode(error, 'Transient')) return { next: { retry: true } };
  if (hasCode(error, 'Conflict', 'NotFound')) return { next: { again: true } };
  throw error;
};

/** The clock jumps to whatever the pass waits for; false when it waits for nothing. */
const wait = (world: World, next: Next, memory: ReturnType<typeof newMemory>): boolean => {
  const [operation] = next.operations ?? [];
  if (operation) noteResult(memory, operation, awaitOperation(world, operation.operation.name));
  else world.now += next.pauseMs ?? 0;
  return operation !== undefined || next.pauseMs !== undefined;
};

/** One call as `run` makes it. `patient` false: it ends at its first wait. */
export const call = async (
  world: World,
  patient = true,
  recall = false,
): Promise<'done' | 'retry' | 'crashed'> => {
  const memory = newMemory(recall);
  const deadline = world.now + BUDGET_MS;
  let left: Left | undefined;
  for (let passes = 0; passes < 200; passes += 1) {
    const passed: Passed | typeof CRASHED = await pass(world, memory, left).catch(afterError);
    if ('crashed' in passed) return 'crashed';
    const { next } = passed;
    left = next.again ? passed.left : undefined;
    if (next.retry) return 'retry';
    if (next.again) continue;
    if (!patient || world.now >= deadline || !wait(world, next, memory)) return 'done';
  }
  world.violations.push('a call that never comes to rest');
  return 'done';
};
