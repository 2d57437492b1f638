/** As much of provision as gc has to live with: it records, creates, deletes, and may be cut short after each step. */

import type { ProxyRecord } from '#shared/domain/record.ts';

import {
  aSimRecord,
  beginDelete,
  createMachine,
  fails,
  intentOf,
  isVisible,
  store,
  type CloudMachine,
  type Proxy,
  type SoakWorld,
} from './world.ts';

class Crash extends Error {}

/** A process may end between any two steps. */
const mayCrash = (world: SoakWorld): void => {
  if (!fails(world)) return;
  world.done.crashes += 1;
  throw new Crash();
};

const RETRY_MS = 60_000;

const withoutWake = (record: ProxyRecord): ProxyRecord => {
  const { wakeAt: _, wakeReason: __, ...rest } = record;
  return rest;
};

const machinesOf = (world: SoakWorld, uid: string): readonly CloudMachine[] =>
  [...world.cloud.values()].filter((entry) => entry.machine.uid === uid && isVisible(world, entry));

const deleteAll = (world: SoakWorld, entries: readonly CloudMachine[]): void => {
  for (const entry of entries) {
    if (entry.goneAt !== Infinity) continue;
    beginDelete(world, entry);
    world.done.deletedByProvision += 1;
    mayCrash(world);
  }
};

const close = (world: SoakWorld, record: ProxyRecord): void => {
  const { uid } = record.ref;
  const left = machinesOf(world, uid);
  deleteAll(world, left);
  if (left.length > 0) {
    store(world, { ...record, deleting: true, wakeAt: world.now + RETRY_MS });
    return;
  }
  const { serving: _, ...rest } = withoutWake(record);
  store(world, { ...rest, deleting: true, machines: [], draining: [], gone: true });
  mayCrash(world);
  world.proxies.delete(uid);
};

const publish = (world: SoakWorld, record: ProxyRecord, { machine }: CloudMachine): ProxyRecord => {
  const { serving } = record;
  if (serving?.endpoint.instanceId === machine.instanceId) return withoutWake(record);
  return {
    ...withoutWake(record),
    serving: {
      endpoint: {
        id: `e-${machine.instanceId}`,
        host: machine.address ?? '',
        port: 3128,
        scheme: 'http',
        instanceId: machine.instanceId,
        credentialsVersion: '',
      },
      verdict: { state: 'Healthy', since: world.now, checkedAt: world.now },
      publishedAt: world.now,
      machine: machine.name,
      zone: machine.zone,
    },
  };
};

/** The recorded machine, which is made when it was never asked for or is lost. */
const converge = (world: SoakWorld, proxy: Proxy, given: ProxyRecord): void => {
  const { uid, owner } = proxy;
  let record = given;
  const lost =
    record.serving !== undefined &&
    !machinesOf(world, uid).some(({ machine }) => machine.name === record.serving?.machine);
  if (record.machines.length === 0 || lost || record.generation !== proxy.generation) {
    const incarnation = record.incarnation + 1;
    const { serving: _, ...rest } = record;
    record = {
      ...rest,
      incarnation,
      generation: proxy.generation,
      machines: [intentOf(owner, uid, incarnation)],
      wakeAt: world.now + RETRY_MS,
    };
    store(world, record);
    mayCrash(world);
    createMachine(world, owner, uid, incarnation);
    mayCrash(world);
  }
  const [intent] = record.machines;
  const mine = machinesOf(world, uid);
  const current = mine.find(({ machine, goneAt }) => machine.name === intent?.name && goneAt === Infinity);
  if (!current) {
    // A call that was cut short is sent again under the same name, and meets its own machine if there is one.
    createMachine(world, owner, uid, record.incarnation);
    return;
  }
  store(world, publish(world, record, current));
  mayCrash(world);
  deleteAll(
    world,
    mine.filter((entry) => entry !== current),
  );
  proxy.observed = proxy.generation;
};

const pass = (world: SoakWorld, uid: string): void => {
  const proxy = world.proxies.get(uid);
  const stored = world.records.get(uid)?.record;
  const isLeaving = !proxy || proxy.deleting;
  if (isLeaving && stored && !stored.gone) close(world, stored);
  else if (isLeaving) world.proxies.delete(uid);
  else if (!stored?.gone) {
    if (!stored) store(world, aSimRecord(proxy));
    mayCrash(world);
    converge(world, proxy, stored ?? aSimRecord(proxy));
  }
};

/** One pass, as a message asks for it. */
export const provision = (world: SoakWorld, uid: string): void => {
  try {
    pass(world, uid);
  } catch (error) {
    if (!(error instanceof Crash)) throw error;
  }
};
