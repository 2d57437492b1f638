/** The fleet of a soak, how it changes under the leases, and what is left of it at the end. */

import { randomUUID } from 'node:crypto';

import { pause } from '#shared/app/wait.ts';
import type { ProxyRecord } from '#shared/domain/record.ts';
import type { Version } from '#shared/firestore/records.ts';

import type { Ledger, Offer } from './ledger.ts';
import { requestOf } from './soak-instances.ts';
import { TTL_SECONDS, type SoakOptions } from './soak-options.ts';

/** Between two changes of the fleet. */
const MOVES_MS = 150;

export interface Moved {
  record: ProxyRecord;
  version: Version;
}

const another = (record: ProxyRecord, { random, maxLeases }: SoakOptions): ProxyRecord => {
  // Cordoned ones come back soon: most of the fleet has to be there for many grants.
  if (record.cordoned) return { ...record, cordoned: false };
  const dice = random();
  if (dice < 0.5) return { ...record, maxLeases: Math.max(1, Math.ceil(random() * maxLeases)) };
  if (dice < 0.6) return { ...record, cordoned: true };
  const { serving } = record;
  if (!serving) return record;
  const host = `10.9.${Math.floor(random() * 256)}.${Math.floor(random() * 256)}`;
  return { ...record, serving: { ...serving, endpoint: { ...serving.endpoint, id: randomUUID(), host } } };
};

export const offerOf = ({ serving, maxLeases, cordoned }: ProxyRecord): Offer => ({
  host: cordoned ? '' : (serving?.endpoint.host ?? ''),
  maxLeases,
});

/** Shrinks, withdraws, cordons and opens proxies; at the end every one is as it was. */
export const mover = async (
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
    await pause(MOVES_MS);
  }
  for (const proxy of moved) {
    await write(proxy, { ...proxy.record, cordoned: false, maxLeases: options.maxLeases });
  }
  return moves;
};

export const openProxies = async ({ fleet, proxies, maxLeases }: SoakOptions): Promise<readonly Moved[]> => {
  const records = await fleet.addProxies(proxies, maxLeases);
  const stored = await Promise.all(records.map(({ ref }) => fleet.records.read(ref.uid)));
  return stored.flatMap((read) => (read ? [{ record: read.record, version: read.version }] : []));
};

/** What is missing to as many leases as there are slots, or too many, once everything has expired. */
export const lostSlots = async ({ fleet, proxies, maxLeases }: SoakOptions): Promise<number> => {
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
