/** GET /v1/proxies: what can be leased, read after the call came in, so never behind a withdrawal. */

import { z } from 'zod';

import type { HttpReply } from '#shared/app/http.ts';
import type { Log } from '#shared/app/log.ts';
import { leasable } from '#shared/domain/lease-standing.ts';
import type { ProxyRef } from '#shared/domain/proxy.ts';
import type { Selector } from '#shared/domain/selector.ts';
import type { LeaseStore } from '#shared/firestore/leases.ts';
import type { ServerTime } from '#shared/firestore/server-time.ts';

import { proxyItem } from './answers.ts';
import { matchesGate } from './decide.ts';
import { conditional } from './etag.ts';
import { invalid } from './input.ts';
import { readable, type Fleet, type FleetEntry } from './fleet.ts';
import type { ListProxiesInput, ProxyItem } from './schemas.ts';

const DEFAULT_LIMIT = 500;

/** Pages are cut by the last name shown, not by a count: entries that come or go in between shift nothing. */
const positionSchema = z.tuple([z.string(), z.string(), z.string()]);
type Position = z.output<typeof positionSchema>;

const positionOf = ({ namespace, name, uid }: ProxyRef): Position => [namespace, name, uid];

const compare = (a: Position, b: Position): number => {
  for (const [index, part] of a.entries()) {
    const other = b[index] ?? '';
    if (part !== other) return part < other ? -1 : 1;
  }
  return 0;
};

const encode = (position: Position): string => Buffer.from(JSON.stringify(position)).toString('base64url');

const decode = (token: string): Position | undefined => {
  try {
    const parsed = positionSchema.safeParse(JSON.parse(Buffer.from(token, 'base64url').toString('utf8')));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
};

export interface ProxyListOptions {
  readonly fleet: Pick<Fleet, 'fresh'>;
  readonly leases: Pick<LeaseStore, 'readMany'>;
  readonly time: ServerTime;
  readonly log: Log;
}

interface Row {
  readonly entry: FleetEntry;
  readonly position: Position;
}

/** What comes after a position, in order. */
const rowsAfter = (entries: readonly FleetEntry[], after: Position | undefined): readonly Row[] =>
  entries
    .filter(({ gate }) => leasable({ gate }))
    .map((entry) => ({ entry, position: positionOf(entry.gate.proxy.ref) }))
    .filter(({ position }) => !after || compare(position, after) > 0)
    .toSorted((a, b) => compare(a.position, b.position));

const plain = (rows: readonly Row[]): readonly ProxyItem[] =>
  rows.flatMap(({ entry }) => proxyItem(entry.gate, undefined) ?? []);

export const makeProxyList = ({ fleet, leases, time, log }: ProxyListOptions) => {
  const counted = async (rows: readonly Row[]): Promise<readonly ProxyItem[]> => {
    const uids = rows.map(({ entry }) => entry.gate.proxy.ref.uid);
    const found = readable(await leases.readMany(uids), log);
    const byUid = new Map(found.map(({ document }) => [document.gate.proxy.ref.uid, document]));
    return uids.flatMap((uid) => {
      const document = byUid.get(uid);
      return (document && proxyItem(document.gate, { document, now: time.now() })) ?? [];
    });
  };

  return async (
    input: ListProxiesInput,
    selector: Selector,
    ifNoneMatch: string | undefined,
  ): Promise<HttpReply> => {
    const after = input.continue === undefined ? undefined : decode(input.continue);
    if (input.continue !== undefined && !after) {
      return invalid([{ field: 'continue', detail: 'is not a token of this list' }]);
    }
    const { namespace, zone, provider } = input;
    const wanted = { selector, namespace, zone, provider };
    const limit = input.limit === undefined ? DEFAULT_LIMIT : Number(input.limit);
    const matching = (await fleet.fresh()).filter(({ gate }) => matchesGate(gate, wanted));
    const rows = rowsAfter(matching, after);
    const page = rows.slice(0, limit);
    const items = input.free === 'true' ? await counted(page) : plain(page);
    const last = page.at(-1);
    const hasMore = rows.length > page.length && last;
    return conditional({ items, ...(hasMore ? { continue: encode(last.position) } : {}) }, ifNoneMatch);
  };
};
