/** GET /v1/proxies: what can be leased, read from the gates after the call came in, so never behind a withdrawal. */

import { z } from 'zod';

import type { HttpReply } from '#shared/app/http.ts';
import type { Log } from '#shared/app/log.ts';
import type { ProxyRef } from '#shared/domain/proxy.ts';
import type { Selector } from '#shared/domain/selector.ts';
import type { LeaseStore } from '#shared/firestore/leases.ts';
import type { ServerTime } from '#shared/firestore/server-time.ts';

import { ok, proxyItem } from './answers.ts';
import { matchesGate } from './decide.ts';
import { invalid } from './input.ts';
import { isOurs, readable, shared } from './picture.ts';
import type { ListProxiesInput } from './schemas.ts';

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
  readonly leases: Pick<LeaseStore, 'open'>;
  readonly namespaces: readonly string[];
  readonly time: ServerTime;
  readonly log: Log;
}

export const makeProxyList = ({ leases, namespaces, time, log }: ProxyListOptions) => {
  const open = shared(() => leases.open());

  return async (input: ListProxiesInput, selector: Selector): Promise<HttpReply> => {
    const after = input.continue === undefined ? undefined : decode(input.continue);
    if (input.continue !== undefined && !after) {
      return invalid([{ field: 'continue', detail: 'is not a token of this list' }]);
    }
    const { namespace, zone, provider } = input;
    const wanted = { selector, namespace, zone, provider };
    const limit = input.limit === undefined ? DEFAULT_LIMIT : Number(input.limit);
    const gates = readable(await open(), log);
    const now = input.free === 'true' ? time.now() : undefined;
    const rest = gates
      .filter(isOurs(namespaces))
      .filter(({ document }) => matchesGate(document.gate, wanted))
      .flatMap(({ document }) => proxyItem(document, now) ?? [])
      .filter(({ proxy }) => !after || compare(positionOf(proxy), after) > 0)
      .toSorted((a, b) => compare(positionOf(a.proxy), positionOf(b.proxy)));
    const items = rest.slice(0, limit);
    const last = items.at(-1);
    const hasMore = rest.length > items.length && last;
    return ok(200, { items, ...(hasMore ? { continue: encode(positionOf(last.proxy)) } : {}) });
  };
};
