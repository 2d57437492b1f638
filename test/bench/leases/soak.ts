/** Many grants under every trouble that instances, replies, clocks and the fleet can make, with a ledger at the clients. */

import { randomUUID } from 'node:crypto';

import { z } from 'zod';

import { systemClock } from '#shared/app/clock.ts';
import { SystemError, hasCode } from '#shared/app/errors.ts';
import type { HttpHandler, HttpReply } from '#shared/app/http.ts';
import { pause } from '#shared/app/wait.ts';
import type { ProxyRecord } from '#shared/domain/record.ts';
import type { LeaseStore } from '#shared/firestore/leases.ts';
import type { Version } from '#shared/firestore/records.ts';

import { makeLedger, type Ledger, type Offer } from './ledger.ts';
import type { Fleet } from './world.ts';

export interface SoakOptions {
  readonly fleet: Fleet;
  readonly grants: number;
  /** It ends then, however few the grants are. Milliseconds. */
  readonly maxMs?: number;
  readonly proxies: number;
  readonly maxLeases: number;
  readonly instances: number;
  readonly workers: number;
  /** Uniform in [0, 1); seeded. */
  readonly random: () => number;
  readonly say?: (line: string) => void;
}

export interface SoakResult {
  readonly grants: number;
  readonly overAllocations: number;
  readonly onWithdrawn: number;
  /** Slots that nobody could lease at the end, when everything had expired; or that were leased beyond the last one. */
  readonly lostSlots: number;
  readonly kills: number;
  readonly lostReplies: number;
  readonly moves: number;
}

const TTL_SECONDS = 2;
const CLOCKS_MS = [0, 120_000, -120_000];
const LOST_REPLY = 0.02;
const LOST_REQUEST = 0.01;
const KILLED = 0.003;

const lease = z.object({
  leaseId: z.string(),
  host: z.string(),
  proxy: z.object({ uid: z.string() }),
  grantedAt: z.iso.datetime().transform((text) => Date.parse(text)),
  expiresAt: z.iso.datetime().transform((text) => Date.parse(text)),
});

/** An instance that loses replies, and dies between a commit and its answer. */
const makeInstance = (
  options: SoakOptions,
  tally: { kills: number; lostReplies: number },
  number: number,
) => {
  const { fleet, random } = options;
  const { promise: death, reject: die } = Promise.withResolvers<never>();
  death.catch(() => undefined);
  const state = { isDead: false };
  const wrap = (store: LeaseStore): LeaseStore => ({
    ...store,
    commit: async (...args) => {
      if (state.isDead) return death;
      const dice = random();
      if (dice < LOST_REQUEST) throw new SystemError('Transient', 'lost on the way');
      const version = await store.commit(...args);
      if (dice > 1 - KILLED) {
        state.isDead = true;
        tally.kills += 1;
        die(new SystemError('Transient', 'the instance was killed'));
        return death;
      }
      if (dice > 1 - KILLED - LOST_REPLY) {
        tally.lostReplies += 1;
        throw new SystemError('Transient', 'no reply');
      }
      return version;
    },
  });
  const offset = CLOCKS_MS[number % CLOCKS_MS.length] ?? 0;
  const clock = {
    now: () => systemClock.now() + offset,
    monotonic: () => systemClock.monotonic() + offset,
  };
  const { handler } = fleet.instance({ clock, wrap });
  return { state, call: (request: Parameters<HttpHandler>[0]) => Promise.race([handler(request), death]) };
};

const JSON_TYPE = { 'content-type': 'application/json' };

const requestOf = (method: string, path: string, body?: object) => ({
  method,
  path,
  query: new URLSearchParams(),
  headers: body ? JSON_TYPE : {},
  body: body ? new TextEncoder().encode(JSON.stringify(body)) : new Uint8Array(),
});

type Call = (method: string, path: string, body?: object) => Promise<HttpReply | undefined>;

/** Calls through a random instance; a dead one is replaced, and its calls have no answer. */
const makeCalls = (options: SoakOptions, tally: { kills: number; lostReplies: number }): Call => {
  let made = 0;
  const make = () => makeInstance(options, tally, made++);
  const instances = Array.from({ length: options.instances }, make);
  return async (method, path, body) => {
    const index = Math.floor(options.random() * instances.length);
    if (instances[index]?.state.isDead) instances[index] = make();
    try {
      return await instances[index]?.call(requestOf(method, path, body));
    } catch (error) {
      if (!hasCode(error, 'Transient', 'Conflict')) throw error;
      return undefined;
    }
  };
};

const worker = async (
  options: SoakOptions,
  call: Call,
  ledger: Ledger,
  isDone: () => boolean,
): Promise<void> => {
  while (!isDone()) {
    const start = ledger.moment();
    const reply = await call('POST', '/v1/leases', { holder: 'soak', ttlSeconds: TTL_SECONDS });
    const granted = reply?.status === 201 ? lease.parse(reply.body) : undefined;
    if (!granted) {
      await pause(5);
      continue;
    }
    ledger.granted({ ...granted, uid: granted.proxy.uid }, start);
    const dice = options.random();
    // Some holders crash: only expiry gives their slots back.
    if (dice < 0.02) continue;
    const path = `/v1/leases/${granted.leaseId}`;
    if (dice < 0.1) {
      const renewed = await call('POST', `${path}/renew`, {});
      const after = z.object({ expiresAt: z.iso.datetime() }).safeParse(renewed?.body);
      if (renewed?.status === 200 && after.success) {
        ledger.renewed(granted.leaseId, Date.parse(after.data.expiresAt));
      }
    }
    ledger.released(granted.leaseId);
    await call('DELETE', path);
  }
};

interface Moved {
  record: ProxyRecord;
  version: Version;
}

const another = (record: ProxyRecord, { random, maxLeases }: SoakOptions): ProxyRecord => {
  const dice = random();
  if (dice < 0.4) return { ...record, maxLeases: Math.max(1, Math.ceil(random() * maxLeases)) };
  if (dice < 0.6) return { ...record, cordoned: !record.cordoned };
  const { serving } = record;
  if (!serving) return record;
  const host = `10.9.${Math.floor(random() * 256)}.${Math.floor(random() * 256)}`;
  return { ...record, serving: { ...serving, endpoint: { ...serving.endpoint, id: randomUUID(), host } } };
};

const offerOf = ({ serving, maxLeases, cordoned }: ProxyRecord): Offer => ({
  host: cordoned ? '' : (serving?.endpoint.host ?? ''),
  maxLeases,
});

/** Shrinks, withdraws, cordons and opens proxies; at the end every one is as it was. */
const mover = async (
  options: SoakOptions,
  moved: readonly Moved[],
  ledger: Ledger,
  isDone: () => boolean,
) => {
  let moves = 0;
  const write = async (proxy: Moved, next: ProxyRecord): Promise<void> => {
    ledger.changing(next.ref.uid, offerOf(next));
    proxy.version = await options.fleet.records.write(next, proxy.version);
    proxy.record = next;
    ledger.changed(next.ref.uid);
    moves += 1;
  };
  while (!isDone()) {
    const proxy = moved[Math.floor(options.random() * moved.length)];
    if (proxy) await write(proxy, another(proxy.record, options));
    await pause(30);
  }
  for (const proxy of moved) {
    await write(proxy, { ...proxy.record, cordoned: false, maxLeases: options.maxLeases });
  }
  return moves;
};

const openProxies = async ({ fleet, proxies, maxLeases }: SoakOptions): Promise<readonly Moved[]> => {
  const records = await fleet.addProxies(proxies, maxLeases);
  const stored = await Promise.all(records.map(({ ref }) => fleet.records.read(ref.uid)));
  return stored.flatMap((read) => (read ? [{ record: read.record, version: read.version }] : []));
};

/** What is missing to as many leases as there are slots, or too many, once everything has expired. */
const lostSlots = async ({ fleet, proxies, maxLeases }: SoakOptions): Promise<number> => {
  const { handler } = fleet.instance();
  const slots = proxies * maxLeases;
  await pause((TTL_SECONDS + 2) * 1_000);
  const acquire = () => handler(requestOf('POST', '/v1/leases', { holder: 'after', ttlSeconds: 600 }));
  let granted = 0;
  for (let tries = 0; tries < 3; tries += 1) {
    const replies = await Promise.all(Array.from({ length: slots - granted + 5 }, acquire));
    granted += replies.filter(({ status }) => status === 201).length;
  }
  return Math.abs(slots - granted);
};

export const soak = async (options: SoakOptions): Promise<SoakResult> => {
  const moved = await openProxies(options);
  await options.fleet.showViews();
  const ledger = makeLedger(moved.map(({ record }) => [record.ref.uid, offerOf(record)]));
  const tally = { kills: 0, lostReplies: 0 };
  const call = makeCalls(options, tally);
  const until = performance.now() + (options.maxMs ?? Number.POSITIVE_INFINITY);
  let told = 0;
  const isDone = (): boolean => {
    const { grants } = ledger.findings();
    if (grants - told >= 10_000) {
      told = grants;
      options.say?.(`${grants} grants, ${tally.kills} kills, ${tally.lostReplies} lost replies`);
    }
    return grants >= options.grants || performance.now() > until;
  };
  const workers = Array.from({ length: options.workers }, () => worker(options, call, ledger, isDone));
  const [moves] = await Promise.all([mover(options, moved, ledger, isDone), ...workers]);
  return { ...ledger.findings(), ...tally, moves, lostSlots: await lostSlots(options) };
};

/** The control: whoever reads a document and then writes it blindly must be found out. Resolves with over-allocations. */
export const racyControl = async (fleet: Fleet, workers: number): Promise<number> => {
  const slot = fleet.db.collection('racy').doc(randomUUID());
  await slot.set({ held: [] });
  const held = z.array(z.string());
  const ledger = makeLedger([['racy', { host: 'racy', maxLeases: 2 }]]);
  const until = performance.now() + 2_000;
  const loop = async (): Promise<void> => {
    while (performance.now() < until) {
      const start = ledger.moment();
      const before = held.parse((await slot.get()).get('held'));
      if (before.length >= 2) continue;
      const leaseId = randomUUID();
      await slot.update({ held: [...before, leaseId] });
      ledger.granted({ uid: 'racy', host: 'racy', leaseId, grantedAt: 1, expiresAt: 2 }, start);
      await pause(2);
      ledger.released(leaseId);
      const after = held.parse((await slot.get()).get('held'));
      await slot.update({ held: after.filter((id) => id !== leaseId) });
    }
  };
  await Promise.all(Array.from({ length: workers }, loop));
  return ledger.findings().overAllocations;
};
