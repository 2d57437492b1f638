/** Faults that can be switched on, each for the calls that it matches and as often as its count says. */

import { z } from 'zod';

export const API_METHODS = [
  'projects.get',
  'zones.list',
  'zones.get',
  'instances.insert',
  'instances.get',
  'instances.list',
  'instances.aggregatedList',
  'instances.delete',
  'instances.start',
  'instances.stop',
  'instances.setLabels',
  'instances.setMetadata',
  'disks.list',
  'disks.aggregatedList',
  'disks.get',
  'disks.delete',
  'operations.get',
  'operations.list',
  'operations.wait',
] as const;
export type ApiMethod = (typeof API_METHODS)[number];

const match = {
  zone: z.string().optional(),
  method: z.enum(API_METHODS).optional(),
  /** Start of the instance's (or operation's) name. */
  namePrefix: z.string().optional(),
  /** How many times it strikes; without it until it is removed. */
  count: z.int().positive().optional(),
};

export const proxyModeSchema = z.union([
  z.strictObject({ kind: z.enum(['ok', 'blackhole', 'refuse', '407', '502']) }),
  z.strictObject({ kind: z.literal('slow'), ms: z.int().nonnegative() }),
]);

export const faultSchema = z.discriminatedUnion('kind', [
  /** The operation ends with ZONE_RESOURCE_POOL_EXHAUSTED, or with its `_WITH_DETAILS` sibling. */
  z.strictObject({
    kind: z.literal('stockOut'),
    details: z.boolean().optional(),
    available: z.array(z.string()).optional(),
    ...match,
  }),
  /** The operation ends with QUOTA_EXCEEDED. */
  z.strictObject({ kind: z.literal('quota'), ...match }),
  /** 403 quotaExceeded instead of an operation. */
  z.strictObject({ kind: z.literal('quotaRefused'), ...match }),
  z.strictObject({
    kind: z.literal('operationError'),
    code: z.string(),
    message: z.string(),
    httpStatus: z.int().optional(),
    ...match,
  }),
  /** The operation takes this long. */
  z.strictObject({ kind: z.literal('slowOperation'), ms: z.int().nonnegative(), ...match }),
  /** The answer comes this much later; the work is done first. */
  z.strictObject({ kind: z.literal('slowResponse'), ms: z.int().nonnegative(), ...match }),
  /** The work is done, the connection closed before the answer. */
  z.strictObject({ kind: z.literal('lostResponse'), ...match }),
  /** One status after the other, one per matching call, and no work done; 200 lets a call through. */
  z.strictObject({
    kind: z.literal('status'),
    statuses: z.array(z.int().min(200).max(599)).min(1),
    reason: z.string().optional(),
    message: z.string().optional(),
    ...match,
  }),
  /** Calls for the zone get 503; an aggregated list names it in a warning, in `unreachables`, or in both. */
  z.strictObject({
    kind: z.literal('unreachableZone'),
    zone: z.string(),
    how: z.enum(['warning', 'unreachables', 'both']).optional(),
  }),
  /** The boot disk stays when its machine goes, although it should go with it. */
  z.strictObject({ kind: z.literal('keptDisk'), ...match }),
  /** The machine's port opens this long after RUNNING; null: never. */
  z.strictObject({ kind: z.literal('boot'), delayMs: z.int().nonnegative().nullable(), ...match }),
  /** How the proxies of machines that boot from now on treat their clients. */
  z.strictObject({ kind: z.literal('proxy'), mode: proxyModeSchema, ...match }),
]);
export type Fault = z.infer<typeof faultSchema>;
export type FaultKind = Fault['kind'];
export type FaultOf<K extends FaultKind> = Extract<Fault, { kind: K }>;

export interface Occasion {
  readonly zone?: string | undefined;
  readonly method?: ApiMethod | undefined;
  readonly name?: string | undefined;
}

export interface ActiveFault {
  readonly id: string;
  readonly fault: Fault;
  readonly struck: number;
}

export interface FaultTable {
  add(fault: Fault): string;
  remove(id: string): boolean;
  clear(): void;
  list(): readonly ActiveFault[];
  /** The oldest fault of this kind that matches, counted as struck; undefined when there is none. */
  strike<K extends FaultKind>(kind: K, occasion: Occasion): FaultOf<K> | undefined;
  /** The next scripted status for this call. */
  nextStatus(occasion: Occasion): { status: number; fault: FaultOf<'status'> } | undefined;
  unreachable(zone: string): FaultOf<'unreachableZone'> | undefined;
}

const isKind = <K extends FaultKind>(fault: Fault, kind: K): fault is FaultOf<K> => fault.kind === kind;

const matches = (fault: Fault, occasion: Occasion): boolean =>
  fault.kind === 'unreachableZone'
    ? fault.zone === occasion.zone
    : (fault.zone === undefined || fault.zone === occasion.zone) &&
      (fault.method === undefined || fault.method === occasion.method) &&
      (fault.namePrefix === undefined || (occasion.name ?? '').startsWith(fault.namePrefix));

/** How often a fault may strike. */
const budget = (fault: Fault): number => {
  if (fault.kind === 'unreachableZone') return Number.POSITIVE_INFINITY;
  if (fault.kind === 'status') return fault.statuses.length * (fault.count ?? 1);
  return fault.count ?? Number.POSITIVE_INFINITY;
};

export const makeFaultTable = (): FaultTable => {
  const active = new Map<string, { readonly fault: Fault; struck: number }>();
  let lastId = 0;

  const hit = <K extends FaultKind>(
    kind: K,
    occasion: Occasion,
  ): { fault: FaultOf<K>; index: number } | undefined => {
    for (const [id, entry] of active) {
      if (!isKind(entry.fault, kind) || !matches(entry.fault, occasion)) continue;
      const index = entry.struck;
      entry.struck += 1;
      if (entry.struck >= budget(entry.fault)) active.delete(id);
      return { fault: entry.fault, index };
    }
    return undefined;
  };

  return {
    add: (fault) => {
      lastId += 1;
      const id = `fault-${lastId}`;
      active.set(id, { fault, struck: 0 });
      return id;
    },
    remove: (id) => active.delete(id),
    clear: () => active.clear(),
    list: () => [...active].map(([id, { fault, struck }]) => ({ id, fault, struck })),
    strike: (kind, occasion) => hit(kind, occasion)?.fault,
    nextStatus: (occasion) => {
      const found = hit('status', occasion);
      const status = found?.fault.statuses[found.index % found.fault.statuses.length];
      return found && status !== undefined ? { status, fault: found.fault } : undefined;
    },
    unreachable: (zone) => hit('unreachableZone', { zone })?.fault,
  };
};
