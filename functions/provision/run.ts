/** One call: passes (observe, decide, act) until the plan ends, with waits in between, within a budget of time. */

import { hasCode } from '#shared/app/errors.ts';
import { noTracing } from '#shared/app/tracing.ts';
import { pause } from '#shared/app/wait.ts';
import type { MachineProvider } from '#shared/domain/machine.ts';
import type { ProxyRef } from '#shared/domain/proxy.ts';

import type { Left } from './act.ts';
import { newMemory, noteResult, type Memory } from './memory.ts';
import { onePass, type PassParts } from './pass.ts';
import type { Next, PendingOperation } from './plan.ts';

export interface Parts extends PassParts {
  readonly limits?: Partial<Limits>;
}

interface Limits {
  /** How long one call may work and wait. */
  readonly budgetMs: number;
  /** How often a waiting call looks at its Proxy. */
  readonly lookMs: number;
}

const LIMITS: Limits = { budgetMs: 120_000, lookMs: 5_000 };

/** More passes without a wait than any Proxy needs: something is wrong, and the message comes back later. */
const MAX_STEADY = 60;
/** The world may move on under us so often in a row. */
const MAX_MOVED = 20;

/** What a wait has to notice: whether the Proxy is still the one that was judged. */
interface Passed {
  readonly next: Next;
  readonly left?: Left;
  readonly generation?: number;
  readonly deleting: boolean;
  readonly provider?: MachineProvider;
}

const tracedPass = async (
  parts: Parts,
  ref: ProxyRef,
  memory: Memory,
  before: Passed | undefined,
): Promise<Passed> => {
  const { sight, plan, left } = await onePass(
    parts,
    ref,
    memory,
    before?.next.again ? before.left : undefined,
  );
  parts.log.debug('pass', { because: plan.because, steps: plan.steps.map(({ kind }) => kind) });
  const { proxy, elsewhere } = sight.observation;
  if (elsewhere)
    parts.log.warning('another cluster answered: that it has no such Proxy counts for nothing', elsewhere);
  return {
    next: plan.next,
    deleting: proxy?.deleting ?? false,
    ...(left ? { left } : {}),
    ...(proxy ? { generation: proxy.generation } : {}),
    ...(sight.provider ? { provider: sight.provider } : {}),
  };
};

const passOnce = (parts: Parts, ref: ProxyRef, memory: Memory, before: Passed | undefined): Promise<Passed> =>
  (parts.tracing ?? noTracing).span('provision.pass', {}, () => tracedPass(parts, ref, memory, before));

const waitForOperation = async (
  { log }: Parts,
  provider: MachineProvider | undefined,
  pending: PendingOperation,
  memory: Memory,
  signal: AbortSignal,
): Promise<void> => {
  try {
    if (provider) noteResult(memory, pending, await provider.wait(pending.operation, signal));
  } catch (error) {
    log.warning('an operation could not be waited for', {
      operation: pending.operation.name,
      error: error instanceof Error ? error.message : '',
    });
    await pause(3_000, signal);
  }
};

/** Resolves when the Proxy was deleted, edited or replaced by another one. */
const proxyMoves = async (
  parts: Parts,
  ref: ProxyRef,
  passed: Passed,
  signal: AbortSignal,
): Promise<void> => {
  const every = parts.limits?.lookMs ?? LIMITS.lookMs;
  while (!signal.aborted) {
    await pause(every, signal);
    if (signal.aborted) return;
    // What cannot be read now is read by the next pass, which answers for it.
    const proxy = await parts.cluster.getProxy(ref).catch(() => 'unknown' as const);
    if (proxy === 'unknown') continue;
    const same =
      proxy?.metadata.uid === ref.uid &&
      proxy.metadata.generation === passed.generation &&
      (proxy.metadata.deletionTimestamp !== undefined) === passed.deleting;
    if (!same) return;
  }
};

/** Waits for whatever comes first; false when the time is up. */
const waitFor = async (
  parts: Parts,
  ref: ProxyRef,
  passed: Passed,
  memory: Memory,
  leftMs: number,
): Promise<boolean> => {
  const { operations = [], pauseMs } = passed.next;
  if (leftMs <= 0) return false;
  const end = new AbortController();
  const waits = [
    ...operations.map((pending) => waitForOperation(parts, passed.provider, pending, memory, end.signal)),
    proxyMoves(parts, ref, passed, end.signal),
    pause(Math.min(pauseMs ?? leftMs, leftMs), end.signal),
  ];
  try {
    await Promise.race(waits);
  } finally {
    end.abort();
    await Promise.allSettled(waits);
  }
  return true;
};

const rests = ({ operations, pauseMs }: Next): boolean =>
  (operations?.length ?? 0) === 0 && pauseMs === undefined;

/** `retry`: the provider is away, and the message should come back. */
export type RunResult = 'done' | 'retry';

/**
 * Works on one Proxy; with `recall`, what carries its UID is looked for first. Throws what makes going on impossible: `Transient`, `Unauthorised` of the cluster or the store,
 * `Conflict` when the world never held still.
 */
export const run = async (outer: Parts, ref: ProxyRef, recall?: boolean): Promise<RunResult> => {
  const parts = { ...outer, log: outer.log.with({ namespace: ref.namespace, name: ref.name, uid: ref.uid }) };
  const memory = newMemory(recall);
  const deadline = parts.clock.monotonic() + (parts.limits?.budgetMs ?? LIMITS.budgetMs);
  let moved = 0;
  let steady = 0;
  let passed: Passed | undefined;
  for (;;) {
    try {
      passed = await passOnce(parts, ref, memory, passed);
    } catch (error) {
      passed = undefined;
      moved += 1;
      if (!hasCode(error, 'Conflict', 'NotFound') || moved > MAX_MOVED) throw error;
      await pause(parts.ids.fraction() * Math.min(1_000, 20 * 2 ** moved));
      continue;
    }
    const { next } = passed;
    if (next.retry) return 'retry';
    steady += 1;
    if (next.again) {
      if (steady > MAX_STEADY) return 'retry';
      continue;
    }
    if (rests(next)) return 'done';
    if (!(await waitFor(parts, ref, passed, memory, deadline - parts.clock.monotonic()))) return 'done';
    steady = 0;
  }
};
