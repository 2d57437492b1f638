/**
 * Watches the store while everything goes on: every version of gates, leases and records that it is shown is remembered
 * with the store's own time, and what must never be is written down.
 */

import { z } from 'zod';

import { closeFirestore, openFirestore } from '#shared/firestore/client.ts';
import { leasesText } from '#shared/firestore/lease-codec.ts';

const gateSchema = z.object({
  gate: z.looseObject({
    endpoint: z.looseObject({ id: z.string(), host: z.string(), port: z.number() }).optional(),
    open: z.boolean(),
  }),
  leases: leasesText,
});

const recordSchema = z.object({
  record: z.looseObject({
    ref: z.looseObject({ uid: z.string(), name: z.string() }),
    generation: z.number(),
    deleting: z.boolean(),
    gone: z.boolean(),
    serving: z
      .looseObject({ machine: z.string().optional(), endpoint: z.looseObject({ id: z.string() }) })
      .optional(),
    machines: z.array(z.looseObject({ name: z.string(), hash: z.string() })),
    wakeReason: z.string().optional(),
  }),
});
export type SeenRecord = z.infer<typeof recordSchema>['record'];

export interface GateVersion {
  /** Milliseconds, the store's time of the write. */
  readonly at: number;
  readonly address?: string;
  readonly open: boolean;
}

interface Gates {
  readonly versions: GateVersion[];
  readonly withdrawn: Set<string>;
  readonly leases: Set<string>;
  endpointId?: string | undefined;
}

export interface RecordVersion {
  readonly at: number;
  readonly record: SeenRecord;
}

export interface Witness {
  /** What must never be, in words. */
  readonly violations: string[];
  /** Leases that were judged. */
  readonly judged: () => number;
  gates(uid: string): readonly GateVersion[];
  records(uid: string): readonly RecordVersion[];
  record(uid: string): SeenRecord | undefined;
  /** Times (ms) at which its record was lost. */
  losses(uid: string): readonly number[];
  stop(): Promise<void>;
}

/** Times of the next two are the store's; its emulator reads the clock of this machine. */
export const startWitness = (projectId: string, databaseId: string): Witness => {
  const db = openFirestore({ projectId, databaseId });
  const gates = new Map<string, Gates>();
  const records = new Map<string, RecordVersion[]>();
  const lost = new Map<string, readonly number[]>();
  const violations: string[] = [];
  let judged = 0;

  /** An endpoint id never comes back: what was withdrawn in a version seen before stays so. */
  const judgeLeases = (
    seen: Gates,
    leases: readonly { readonly id: string; readonly endpoint: { readonly id: string } }[],
  ): void => {
    for (const { id, endpoint } of leases) {
      if (seen.leases.has(id)) continue;
      seen.leases.add(id);
      judged += 1;
      if (seen.withdrawn.has(endpoint.id))
        violations.push(`B1: lease ${id} was granted on ${endpoint.id} after its withdrawal was committed`);
    }
  };

  const onGate = (uid: string, at: number, data: unknown): void => {
    const { gate, leases } = gateSchema.parse(data);
    const seen: Gates = gates.get(uid) ?? { versions: [], withdrawn: new Set(), leases: new Set() };
    gates.set(uid, seen);
    judgeLeases(seen, Object.values(leases.leases));
    if (seen.endpointId !== undefined && seen.endpointId !== gate.endpoint?.id)
      seen.withdrawn.add(seen.endpointId);
    if (gate.endpoint && seen.withdrawn.has(gate.endpoint.id))
      violations.push(`B1: endpoint ${gate.endpoint.id} of ${uid} came back after its withdrawal`);
    seen.endpointId = gate.endpoint?.id;
    const address = gate.endpoint && `${gate.endpoint.host}:${gate.endpoint.port}`;
    seen.versions.push({ at, open: gate.open, ...(address ? { address } : {}) });
  };

  /** A record that is lost publishes nothing. */
  const onLoss = (uid: string, at: number): void => {
    const versions = records.get(uid);
    const last = versions?.at(-1);
    if (!versions || !last) return;
    const { serving: _, ...record } = last.record;
    versions.push({ at, record });
    lost.set(uid, [...(lost.get(uid) ?? []), at]);
  };

  const onRecord = (uid: string, at: number, data: unknown): void => {
    const { record } = recordSchema.parse(data);
    const versions = records.get(uid) ?? [];
    versions.push({ at, record });
    records.set(uid, versions);
  };

  const listen = (collection: string, take: (uid: string, at: number, data: unknown) => void) =>
    db.collection(collection).onSnapshot(
      (snapshot) => {
        for (const { type, doc } of snapshot.docChanges()) {
          if (type === 'removed') {
            if (collection === 'proxies') onLoss(doc.id, snapshot.readTime.toMillis());
            continue;
          }
          try {
            take(doc.id, doc.updateTime.toMillis(), doc.data());
          } catch (error) {
            violations.push(`${collection}/${doc.id} cannot be read: ${String(error)}`);
          }
        }
      },
      (error) => violations.push(`the witness went blind on ${collection}: ${error.message}`),
    );

  const ends = [listen('leases', onGate), listen('proxies', onRecord)];
  return {
    violations,
    judged: () => judged,
    gates: (uid) => gates.get(uid)?.versions ?? [],
    records: (uid) => records.get(uid) ?? [],
    record: (uid) => records.get(uid)?.at(-1)?.record,
    losses: (uid) => lost.get(uid) ?? [],
    async stop() {
      for (const end of ends) end();
      await closeFirestore(db);
    },
  };
};
