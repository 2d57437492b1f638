/** A Firestore for one lease document, in memory, with scripted faults; and a handler over it. */

import { Timestamp } from '@google-cloud/firestore';

import type { Clock } from '#shared/app/clock.ts';
import { SystemError } from '#shared/app/errors.ts';
import type { LeaseDocument } from '#shared/domain/lease.ts';
import type { IdempotencyEntry } from '#shared/firestore/idempotency.ts';
import type { StoredLeases } from '#shared/firestore/leases.ts';
import { serverTime } from '#shared/firestore/server-time.ts';

export interface Fault {
  /** The write is stored although the call fails. */
  readonly stored: boolean;
  readonly error: SystemError;
}

export const conflict = (): SystemError => new SystemError('Conflict', 'stale version');
export const lost = (): SystemError => new SystemError('Transient', 'no reply');

const noRecords = () => Promise.resolve({ records: [], unreadable: [], readTime: 0 });

export const fakeLeases = (uid: string, initial: LeaseDocument) => {
  let document: LeaseDocument | undefined = initial;
  let version = 1;
  let millis = 1_000_000;
  const local = { value: 0 };
  const clock: Clock = { now: () => 0, monotonic: () => local.value };
  const time = serverTime(clock);
  const entries = new Map<string, IdempotencyEntry>();
  const faults: (Fault | undefined)[] = [];
  const calls: string[] = [];

  const stamp = (): Timestamp => Timestamp.fromMillis(millis + version);
  const stored = (): StoredLeases | undefined => document && { document, version: { updateTime: stamp() } };

  const store = (next: LeaseDocument, added: readonly IdempotencyEntry[]): void => {
    if (!document) throw conflict();
    document = { ...next, gate: document.gate };
    for (const entry of added) entries.set(entry.id, entry);
    version += 1;
  };

  const selection = () => ({ found: [stored() ?? []].flat(), unreadable: [] });

  return {
    clock,
    time,
    entries,
    faults,
    calls,
    stored,
    /** Passes time on both clocks. */
    advance(ms: number): void {
      millis += ms;
      local.value += ms;
    },
    /** What another instance or function writes meanwhile. */
    write(change: (before: LeaseDocument) => LeaseDocument): void {
      if (document) document = change(document);
      version += 1;
    },
    remove(): void {
      document = undefined;
    },
    leases: {
      all: () => Promise.resolve(selection()),
      readMany: () => Promise.resolve(selection()),
      free: () => Promise.resolve(selection()),
      heldBy: () => Promise.resolve(selection()),
      read: (asked: string) => {
        calls.push('read');
        time.observe(Timestamp.fromMillis(millis + version));
        return Promise.resolve(asked === uid ? stored() : undefined);
      },
      commit: async (
        _uid: string,
        { version: { updateTime } }: StoredLeases,
        next: LeaseDocument,
        added: readonly IdempotencyEntry[],
      ) => {
        calls.push('commit');
        // Whatever came in the same turn has had its chance to queue behind this commit.
        await Promise.resolve();
        if (!updateTime.isEqual(stamp()) || added.some(({ id }) => entries.has(id))) throw conflict();
        const fault = faults.shift();
        if (!fault || fault.stored) store(next, added);
        if (fault) throw fault.error;
        time.observe(stamp());
        return { document: next, version: { updateTime: stamp() } };
      },
    },
    views: { read: () => Promise.resolve(undefined) },
    records: { changedSince: noRecords, unpublished: noRecords },
    idempotency: {
      read: (ids: readonly string[]) => {
        calls.push('read keys');
        const remembered = new Map([...entries].filter(([id]) => ids.includes(id)));
        return Promise.resolve({ remembered, over: [] });
      },
      forget: () => Promise.resolve(),
      addTo: () => undefined,
    },
  };
};
