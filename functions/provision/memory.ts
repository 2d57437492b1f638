/** What one call remembers between its passes. None of it is needed: a call that begins without it does the same, later. */

import { bounded } from '#shared/domain/conditions.ts';
import type { OperationResult } from '#shared/domain/machine.ts';

import type { Observation, PendingOperation, Refusal } from './plan.ts';

export interface Memory {
  /** `zone/name` that this call recorded and has not asked anything for. */
  readonly untouched: Set<string>;
  /** When `zone/name` was first seen to be absent, on the monotonic clock. */
  readonly absentSince: Map<string, number>;
  /** By operation name. */
  readonly pending: Map<string, PendingOperation>;
  readonly ended: Set<string>;
  /** By the provider's id of the machine, or of what it left. */
  readonly deletesSent: Map<string, { readonly machine: string; readonly at: number }>;
  /** Whether what carries the Proxy's UID is to be looked for, whatever its record says. */
  recall: boolean;
  /** What was found, by the one look that a call takes. */
  forgotten?: NonNullable<Observation['forgotten']>;
  /** Since the last plan that was carried out. */
  refusals: readonly Refusal[];
}

export const newMemory = (recall = false): Memory => ({
  recall,
  untouched: new Set(),
  absentSince: new Map(),
  pending: new Map(),
  ended: new Set(),
  deletesSent: new Map(),
  refusals: [],
});

export const placeKey = (zone: string, name: string): string => `${zone}/${name}`;

/** A provider's text goes into the record and into conditions; more than this tells nobody anything. Code points. */
const MAX_MESSAGE = 4_096;

/** Notes a refusal; a delete call that was refused was not sent. */
export const noteRefusal = (memory: Memory, refusal: Refusal): void => {
  const message = bounded(refusal.message, MAX_MESSAGE);
  memory.refusals = [...memory.refusals, { ...refusal, message }];
  if (refusal.kind !== 'delete') return;
  for (const [instanceId, { machine }] of memory.deletesSent)
    if (machine === refusal.machine) memory.deletesSent.delete(instanceId);
};

/** Notes how an operation ended; one that still runs stays pending. */
export const noteResult = (memory: Memory, pending: PendingOperation, result: OperationResult): void => {
  if (result.kind === 'running') return;
  const { name, zone } = pending.operation;
  memory.pending.delete(name);
  memory.ended.add(name);
  if (result.kind !== 'failed') return;
  const { kind: _failed, ...refusal } = result;
  noteRefusal(memory, { kind: pending.kind, machine: pending.machine, zone, ...refusal });
};
