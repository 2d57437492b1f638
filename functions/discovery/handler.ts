/** The API: checks what came in, and hands it to the call that it is for. */

import { callerOf } from '#shared/app/caller.ts';
import type { Clock } from '#shared/app/clock.ts';
import type { HttpHandler } from '#shared/app/http.ts';
import type { Ids } from '#shared/app/ids.ts';
import { lazily } from '#shared/app/lazily.ts';
import type { Log } from '#shared/app/log.ts';
import type { Metrics } from '#shared/app/metrics.ts';
import type { CredentialStore } from '#shared/firestore/credentials.ts';
import { withDeadline } from '#shared/firestore/deadline.ts';
import type { IdempotencyStore } from '#shared/firestore/idempotency.ts';
import type { LeaseStore } from '#shared/firestore/leases.ts';
import type { RecordStore } from '#shared/firestore/records.ts';
import type { ServerTime } from '#shared/firestore/server-time.ts';
import type { ViewStore } from '#shared/firestore/views.ts';

import { makeAcquire } from './acquire.ts';
import { ok } from './answers.ts';
import { credentialCache } from './credential-cache.ts';
import { makeFleet } from './fleet.ts';
import { makeGroupCommit } from './group-commit.ts';
import { parseBody, parseIdempotencyKey, parseLabelSelector, parseQuery } from './input.ts';
import { makeLeaseCalls, type LeaseCallOptions } from './leases.ts';
import { makeProxyList } from './proxies.ts';
import { makeRouter, type Call, type Routes } from './router.ts';
import { inputSchemas, type InputSchemas, type TtlLimits } from './schemas.ts';
import { makeSelection } from './selection.ts';

export interface DiscoveryOptions {
  readonly leases: LeaseStore;
  readonly idempotency: IdempotencyStore;
  readonly views: ViewStore;
  readonly records: Pick<RecordStore, 'changedSince' | 'unpublished'>;
  readonly credentials: Pick<CredentialStore, 'read'>;
  readonly time: ServerTime;
  readonly publisher: LeaseCallOptions['publisher'];
  readonly installation: string;
  readonly namespaces: readonly string[];
  readonly ttl: TtlLimits;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly metrics: Metrics;
}

const READY_DEADLINE_MS = 5_000;
/** No proxy and no endpoint has this id: reading it tells only whether the database answers. */
const NOBODY = 'readiness';

/** One after the other, so that no read is left behind when the first one fails. */
const readBoth = async ({ leases, credentials }: DiscoveryOptions): Promise<void> => {
  await leases.read(NOBODY);
  await credentials.read(NOBODY);
};

const calls = (options: DiscoveryOptions) => {
  const commits = makeGroupCommit(options);
  const credentials = credentialCache(options.credentials);
  const common = { ...options, commits, credentials, fleet: makeFleet(options) };
  const selection = makeSelection(common);
  return {
    acquire: makeAcquire({ ...common, selection }),
    listProxies: makeProxyList(common),
    lease: makeLeaseCalls(common),
    ready: () => withDeadline('readiness', () => readBoth(options), READY_DEADLINE_MS),
  };
};
type Calls = ReturnType<typeof calls>;

const collectionRoutes = ({ acquire, listProxies, lease }: Calls, schemas: InputSchemas): Routes => ({
  '/v1/proxies': {
    GET: (request) => {
      const query = parseQuery(schemas.listProxies, request.query);
      if (query.kind === 'problem') return query.reply;
      const selector = parseLabelSelector(query.value.labelSelector);
      if (selector.kind === 'problem') return selector.reply;
      return listProxies(query.value, selector.value, request.headers['if-none-match']);
    },
  },
  '/v1/leases': {
    GET: (request) => {
      const query = parseQuery(schemas.listLeases, request.query);
      if (query.kind === 'problem') return query.reply;
      return lease.listOwn(query.value.holder, callerOf(request.headers));
    },
    POST: (request) => {
      const key = parseIdempotencyKey(request);
      if (key.kind === 'problem') return key.reply;
      const input = parseBody(schemas.acquire, request);
      if (input.kind === 'problem') return input.reply;
      const selector = parseLabelSelector(input.value.labelSelector);
      if (selector.kind === 'problem') return selector.reply;
      const caller = callerOf(request.headers);
      return acquire({ input: input.value, selector: selector.value, caller, key: key.value });
    },
  },
});

const leaseRoutes = ({ lease }: Calls, schemas: InputSchemas): Routes => ({
  '/v1/leases/{id}': {
    GET: (request, id) => lease.get(id, callerOf(request.headers)),
    DELETE: (request, id) => lease.release(id, callerOf(request.headers)),
  },
  '/v1/leases/{id}/renew': {
    POST: (request, id) => {
      const input = parseBody(schemas.renew, request);
      if (input.kind === 'problem') return input.reply;
      return lease.renew(id, callerOf(request.headers), input.value.ttlSeconds);
    },
  },
  '/v1/leases/{id}/report': {
    POST: (request, id) => {
      const input = parseBody(schemas.report, request);
      if (input.kind === 'problem') return input.reply;
      const { outcome, target } = input.value;
      return lease.report(id, callerOf(request.headers), { outcome, target });
    },
  },
});

/** Made when it is first asked for: few instances ever are. */
const documentOf = (schemas: InputSchemas): (() => Promise<unknown>) => {
  const document = lazily(async () => {
    const { openApiDocument } = await import('./openapi.ts');
    return openApiDocument(schemas);
  });
  return document.get;
};

const operatorRoutes = ({ ready }: Calls, schemas: InputSchemas): Routes => {
  const document = documentOf(schemas);
  return {
    '/openapi.json': { GET: async () => ({ status: 200, body: await document() }) },
    '/health': { GET: () => ok(200, { status: 'ok' }) },
    '/ready': {
      GET: async () => {
        await ready();
        return ok(200, { status: 'ready' });
      },
    },
  };
};

/** Refuses query parameters where a call has none, so that a misplaced one is not silently ignored. */
const withoutQuery =
  (schemas: InputSchemas) =>
  (call: Call): Call =>
  (request, id) => {
    const query = parseQuery(schemas.nothing, request.query);
    return query.kind === 'problem' ? query.reply : call(request, id);
  };

const mapCalls = (routes: Routes, change: (call: Call) => Call): Routes =>
  Object.fromEntries(
    Object.entries(routes).map(([path, methods]) => [
      path,
      Object.fromEntries(Object.entries(methods).map(([method, call]) => [method, change(call)])),
    ]),
  );

export const makeHandler = (options: DiscoveryOptions): HttpHandler => {
  const schemas = inputSchemas(options.ttl);
  const all = calls(options);
  return makeRouter({
    ...collectionRoutes(all, schemas),
    ...mapCalls(leaseRoutes(all, schemas), withoutQuery(schemas)),
    ...operatorRoutes(all, schemas),
  });
};
