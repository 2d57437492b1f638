/** One cloud, one cluster and one database that several installations share, with a ledger of what must not happen. */

import type { Leftover, Machine } from '#shared/domain/machine.ts';
import { machineName } from '#shared/domain/names.ts';
import { DEFAULT_HEALTH_CHECK } from '#shared/domain/proxy.ts';
import type { MachineIntent, ProxyRecord } from '#shared/domain/record.ts';

import { seeded } from '#test/bench/leases/random.ts';

import { LIMITS, NOW, ZONE, uidOf } from '../builders.ts';

export const ZONES = [ZONE, 'europe-west1-c'] as const;
export const HASH = 'abcdef0123';
/** How far the clock of a run may be off, in either direction. Milliseconds. */
export const MAX_SKEW_MS = 120_000;

export interface Proxy {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly owner: string;
  generation: number;
  observed: number;
  deleting: boolean;
}

export interface CloudMachine {
  machine: Machine;
  /** No list and no read shows it before (ms): its create call is on its way. */
  readonly visibleAt: number;
  /** When (ms) it will have stopped for good; Infinity while nobody has asked. */
  goneAt: number;
}

export interface StoredSim {
  record: ProxyRecord;
  updatedAt: number;
}

export interface SoakWorld {
  now: number;
  readonly random: () => number;
  /** How likely each single thing goes wrong; 0 = no faults. */
  trouble: number;
  /** By UID. */
  readonly proxies: Map<string, Proxy>;
  /** By instance id. */
  readonly cloud: Map<string, CloudMachine>;
  /** Boot disks without a machine, by their id. */
  readonly leftovers: Map<string, Leftover>;
  /** By UID. */
  readonly records: Map<string, StoredSim>;
  /** By installation, then key. */
  readonly sightings: Map<string, Map<string, number>>;
  readonly unreachable: Set<string>;
  /** What gc did and never should have. */
  readonly wrong: string[];
  readonly done: Record<
    | 'created'
    | 'deletedByGc'
    | 'leftBehind'
    | 'leftoversDeleted'
    | 'deletedByProvision'
    | 'crashes'
    | 'frozen',
    number
  >;
  serial: number;
}

export const aSoakWorld = (seed: number): SoakWorld => ({
  now: NOW,
  random: seeded(seed),
  trouble: 0,
  proxies: new Map(),
  cloud: new Map(),
  leftovers: new Map(),
  records: new Map(),
  sightings: new Map(),
  unreachable: new Set(),
  wrong: [],
  done: {
    created: 0,
    deletedByGc: 0,
    leftBehind: 0,
    leftoversDeleted: 0,
    deletedByProvision: 0,
    crashes: 0,
    frozen: 0,
  },
  serial: 0,
});

export const happens = (world: SoakWorld, chance: number): boolean => world.random() < chance;

export const fails = (world: SoakWorld): boolean => happens(world, world.trouble);

export const pick = <T>(world: SoakWorld, items: readonly T[]): T | undefined =>
  items[Math.floor(world.random() * items.length)];

/** Returns its UID. */
export const addProxy = (world: SoakWorld, owner: string, name: string): string => {
  world.serial += 1;
  const uid = uidOf(world.serial);
  world.proxies.set(uid, {
    uid,
    namespace: `of-${owner}`,
    name,
    owner,
    generation: 1,
    observed: 0,
    deleting: false,
  });
  return uid;
};

/** A create call: it may take minutes until anything of it is to be seen. Under a name that is taken it makes nothing. */
export const createMachine = (world: SoakWorld, owner: string, uid: string, incarnation: number): void => {
  const name = machineName(owner, uid, HASH, incarnation);
  if ([...world.cloud.values()].some(({ machine }) => machine.name === name)) return;
  world.serial += 1;
  world.done.created += 1;
  const zone = pick(world, ZONES) ?? ZONES[0];
  const late = fails(world) ? world.random() * 300_000 : 0;
  const instanceId = `i${world.serial}`;
  world.cloud.set(instanceId, {
    visibleAt: world.now + late,
    goneAt: Infinity,
    machine: {
      name,
      zone,
      instanceId,
      providerID: `gce://project/${zone}/${name}`,
      state: 'running',
      address: `203.0.113.${world.serial % 250}`,
      installation: owner,
      uid,
      hash: HASH,
      createdAt: world.now + late,
    },
  });
};

export const isVisible = ({ now }: SoakWorld, { visibleAt, goneAt }: CloudMachine): boolean =>
  visibleAt <= now && goneAt > now;

const asShown = ({ machine, goneAt }: CloudMachine): Machine =>
  goneAt === Infinity ? machine : { ...machine, state: 'stopping' };

export const visibleMachines = (world: SoakWorld): readonly Machine[] =>
  [...world.cloud.values()].filter((entry) => isVisible(world, entry)).map(asShown);

export const beginDelete = (world: SoakWorld, entry: CloudMachine): void => {
  if (entry.goneAt === Infinity) entry.goneAt = world.now + (fails(world) ? 240_000 : 30_000);
};

/** A machine that has gone, and sometimes its boot disk stays. */
export const vanish = (world: SoakWorld, { machine }: CloudMachine): void => {
  world.cloud.delete(machine.instanceId);
  if (!fails(world)) return;
  const { name, zone, instanceId, installation = '', uid = '', createdAt = 0 } = machine;
  const id = `disk-of-${instanceId}`;
  world.leftovers.set(id, { id, name, zone, installation, uid, createdAt });
  world.done.leftBehind += 1;
};

export const aSimRecord = ({ uid, namespace, name, owner }: Proxy): ProxyRecord => ({
  ref: { namespace, name, uid },
  installation: owner,
  provider: 'gcp',
  generation: 1,
  labels: {},
  maxLeases: 1,
  cordoned: false,
  deleting: false,
  drainTimeoutSeconds: 300,
  healthCheck: DEFAULT_HEALTH_CHECK,
  draining: [],
  machines: [],
  incarnation: 0,
  gone: false,
});

export const intentOf = (owner: string, uid: string, incarnation: number): MachineIntent => ({
  name: machineName(owner, uid, HASH, incarnation),
  hash: HASH,
  incarnation,
  zones: [...ZONES],
});

export const store = (world: SoakWorld, record: ProxyRecord): void => {
  world.records.set(record.ref.uid, { record, updatedAt: world.now });
};

export { LIMITS };
