/** One pass: observe, decide, act. */

import type { ProxyRef } from '#shared/domain/proxy.ts';

import { act, type Effects, type Left } from './act.ts';
import { decide } from './decide.ts';
import type { Memory } from './memory.ts';
import { observe, type Sight, type Sources } from './observe.ts';
import type { Plan, Step } from './plan.ts';

export interface PassParts
  extends
    Omit<Sources, 'cluster' | 'records' | 'credentials'>,
    Omit<Effects, 'cluster' | 'records' | 'credentials'> {
  readonly cluster: Sources['cluster'] & Effects['cluster'];
  readonly records: Sources['records'] & Effects['records'];
  readonly credentials: Sources['credentials'] & Effects['credentials'];
}

/** Steps that nothing takes back: they rest on what was read for them. */
const FINAL: ReadonlySet<Step['kind']> = new Set([
  'deleteMachine',
  'deleteLeftover',
  'removeCredentials',
  'removeLeases',
  'removeFinalizer',
]);

/** Sources that answer with what the pass before wrote a moment ago, so that it is not read again. */
const remembering = (parts: PassParts, { proxy, stored }: Left): Sources => ({
  ...parts,
  cluster: { ...parts.cluster, getProxy: () => Promise.resolve(proxy) },
  records: { ...parts.records, read: () => Promise.resolve(stored) },
});

interface Decided {
  readonly sight: Sight;
  readonly plan: Plan;
}

const decideFrom = async (sources: Sources, ref: ProxyRef, memory: Memory): Promise<Decided> => {
  const sight = await observe(sources, ref, memory);
  return { sight, plan: decide(sight.observation, sight.now) };
};

/** From what the pass before left, if it did: writes are refused where that is old, and final steps want to read first. */
const decideOn = async (
  parts: PassParts,
  ref: ProxyRef,
  memory: Memory,
  left: Left | undefined,
): Promise<Decided> => {
  if (!left) return decideFrom(parts, ref, memory);
  const decided = await decideFrom(remembering(parts, left), ref, memory);
  const isFinal = decided.plan.steps.some(({ kind }) => FINAL.has(kind));
  return isFinal ? decideFrom(parts, ref, memory) : decided;
};

export interface Pass extends Decided {
  readonly left: Left | undefined;
}

/**
 * `before`: what the pass before left, where this one follows at once. Throws `Conflict` or `NotFound` when the world has
 * moved on, `Transient` when something is away.
 */
export const onePass = async (
  parts: PassParts,
  ref: ProxyRef,
  memory: Memory,
  before: Left | undefined,
): Promise<Pass> => {
  const decided = await decideOn(parts, ref, memory, before);
  return { ...decided, left: await act(parts, decided.sight, decided.plan, memory) };
};
