/**
 * The fleet as this instance knows it: the views, and over them every record that changed since they were made. What lists
 * show and acquires choose from; the gate makes a choice that is a moment old harmless.
 */

import type { Clock } from '#shared/app/clock.ts';
import type { Ids } from '#shared/app/ids.ts';
import type { Log } from '#shared/app/log.ts';
import { gateOf, type Gate } from '#shared/domain/gate.ts';
import {
  versionTime,
  type LeaseSelection,
  type LeaseStore,
  type StoredLeases,
} from '#shared/firestore/leases.ts';
import type { RecordStore, Selection } from '#shared/firestore/records.ts';
import type { ViewStore } from '#shared/firestore/views.ts';

import { preference } from './decide.ts';
import { shared } from './shared.ts';

/** A proxy as it was at a moment; `at` in server milliseconds. */
export interface FleetEntry {
  readonly gate: Gate;
  readonly at: number;
  /** The whole document, where it was read. */
  readonly stored?: StoredLeases;
}

export interface Fleet {
  /**
   * For a choice: at most `maxAgeMs` old, and without waiting where that can be had. In this instance's order of preference;
   * the same array as long as nothing changes.
   */
  recent(maxAgeMs: number): Promise<readonly FleetEntry[]>;
  /** Read after this call was made. In the same order. */
  fresh(): Promise<readonly FleetEntry[]>;
  /** Proxies that publish nothing yet, read after this call was made. */
  unpublished(): Promise<readonly FleetEntry[]>;
}

export interface FleetOptions {
  readonly leases: Pick<LeaseStore, 'all'>;
  readonly views: ViewStore;
  readonly records: Pick<RecordStore, 'changedSince' | 'unpublished'>;
  readonly installation: string;
  readonly namespaces: readonly string[];
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly ids: Pick<Ids, 'token'>;
  readonly log: Log;
}

/** A choice from a fleet that is older asks for a newer one, though it may not wait for it. */
const RECENT_MS = 1_000;
/** The same where each reading reads every document. */
const RECENT_WITHOUT_VIEWS_MS = 10_000;
/** Views are read again when they were read longer ago, */
const VIEWS_MS = 30_000;
/** or when so many records have changed since, each of which costs a read each time, */
const MAX_CHANGES = 50;
/** but no sooner than that: whoever writes them may be away. */
const VIEWS_MIN_MS = 10_000;
/** A write takes its time at the start of its commit: it may become visible later than others that carry a later time. */
const MARGIN_MS = 15_000;

/** What can be read; what cannot is logged and left out. */
export const readable = ({ found, unreadable }: LeaseSelection, log: Log): readonly StoredLeases[] => {
  if (unreadable.length > 0) log.warning('lease documents are not readable', { uids: unreadable });
  return found;
};

/** Tombstones and other installations' namespaces are not part of it. */
export const isOurs =
  (namespaces: readonly string[]) =>
  (gate: Gate): boolean =>
    gate.closedReason !== 'Gone' &&
    (namespaces.includes('*') || namespaces.includes(gate.proxy.ref.namespace));

export const entryOf = (stored: StoredLeases): FleetEntry => ({
  gate: stored.document.gate,
  at: versionTime(stored.version),
  stored,
});

const entriesOf = ({ records }: Selection): readonly FleetEntry[] =>
  records.map(({ record, version }) => ({ gate: gateOf(record), at: version.updateTime.toMillis() }));

/** The views as they were read at `readHere` (local monotonic milliseconds). */
interface Base {
  readonly readAt: number;
  readonly readHere: number;
  readonly entries: ReadonlyMap<string, FleetEntry>;
}

interface Loaded {
  readonly entries: readonly FleetEntry[];
  readonly at: number;
  readonly hasViews: boolean;
}

/** Views, read again when they have grown old. */
const makeBase = ({ views, installation, clock }: FleetOptions) => {
  let base: Base | undefined;
  return async (changes: number): Promise<Base | undefined> => {
    const readHere = clock.monotonic();
    const age = base ? readHere - base.readHere : Number.POSITIVE_INFINITY;
    if (age <= VIEWS_MIN_MS || (age <= VIEWS_MS && changes <= MAX_CHANGES)) return base;
    const read = await views.read(installation);
    base = read && {
      readAt: read.readAt,
      readHere,
      entries: new Map(read.gates.map((gate) => [gate.proxy.ref.uid, { gate, at: read.readAt }])),
    };
    return base;
  };
};

const merged = ({ entries }: Base, changed: Selection): Iterable<FleetEntry> => {
  const all = new Map(entries);
  for (const entry of entriesOf(changed)) all.set(entry.gate.proxy.ref.uid, entry);
  // What cannot be read may be withdrawn.
  for (const uid of changed.unreadable) all.delete(uid);
  return all.values();
};

/** Equal for equal changes. */
const changesKey = ({ records, unreadable }: Selection): string =>
  JSON.stringify([
    unreadable,
    records.map(({ record, version }) => [record.ref.uid, version.updateTime.valueOf()]),
  ]);

const makeLoad = (options: FleetOptions) => {
  const { leases, records, installation, namespaces, clock, log } = options;
  const instance = options.ids.token();
  const ours = isOurs(namespaces);
  const baseNow = makeBase(options);
  let before:
    { readonly base: Base; readonly key: string; readonly entries: readonly FleetEntry[] } | undefined;
  let changes = 0;

  const inOrder = (entries: Iterable<FleetEntry>): readonly FleetEntry[] =>
    [...entries]
      .filter(({ gate }) => ours(gate))
      .map((entry) => ({ entry, rank: preference(instance, entry.gate.proxy.ref.uid) }))
      .toSorted((a, b) => a.rank - b.rank)
      .map(({ entry }) => entry);

  return async (): Promise<Loaded> => {
    const at = clock.monotonic();
    const base = await baseNow(changes);
    if (!base) {
      const all = readable(await leases.all(), log);
      return { entries: inOrder(all.map(entryOf)), at, hasViews: false };
    }
    const changed = await records.changedSince(installation, base.readAt - MARGIN_MS);
    if (changed.unreadable.length > 0) log.warning('records are not readable', { uids: changed.unreadable });
    changes = changed.records.length;
    const key = changesKey(changed);
    const isSame = before?.base === base && before.key === key;
    const entries = isSame && before ? before.entries : inOrder(merged(base, changed));
    before = { base, key, entries };
    return { entries, at, hasViews: true };
  };
};

export const makeFleet = (options: FleetOptions): Fleet => {
  const { records, installation, namespaces, clock, log } = options;
  const load = makeLoad(options);
  let cached: Loaded | undefined;
  const fresh = shared(async () => {
    cached = await load();
    return cached.entries;
  });
  let refreshing: Promise<readonly FleetEntry[]> | undefined;
  /** Unlike `fresh`, a load that is already running will do. */
  const refresh = (): Promise<readonly FleetEntry[]> => {
    refreshing ??= fresh().finally(() => {
      refreshing = undefined;
    });
    return refreshing;
  };
  return {
    fresh,
    recent(maxAgeMs) {
      const age = cached ? clock.monotonic() - cached.at : Number.POSITIVE_INFINITY;
      if (!cached || age > maxAgeMs) return refresh();
      if (age > (cached.hasViews ? RECENT_MS : RECENT_WITHOUT_VIEWS_MS)) {
        refresh().catch((error: unknown) => log.error('the fleet was not read', error));
      }
      return Promise.resolve(cached.entries);
    },
    unpublished: async () =>
      entriesOf(await records.unpublished(installation)).filter(({ gate }) => isOurs(namespaces)(gate)),
  };
};
