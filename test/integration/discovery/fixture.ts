/** Instances of discovery over the Firestore emulator, and proxies for them to lease. */

import { randomBytes, randomUUID } from 'node:crypto';

import type { Firestore } from '@google-cloud/firestore';
import { inject } from 'vitest';

import { systemClock, type Clock } from '#shared/app/clock.ts';
import type { HttpHandler, HttpReply } from '#shared/app/http.ts';
import { systemIds } from '#shared/app/ids.ts';
import { makeLog } from '#shared/app/log.ts';
import { noMetrics } from '#shared/app/metrics.ts';
import type { ProbeMessage } from '#shared/domain/message.ts';
import { DEFAULT_HEALTH_CHECK } from '#shared/domain/proxy.ts';
import type { ProxyRecord, Publication } from '#shared/domain/record.ts';
import { closeFirestore, openFirestore } from '#shared/firestore/client.ts';
import { credentialStore } from '#shared/firestore/credentials.ts';
import { guarded, makeGuard, type Guard } from '#shared/firestore/guard.ts';
import { idempotencyStore } from '#shared/firestore/idempotency.ts';
import { leaseStore, type LeaseStore } from '#shared/firestore/leases.ts';
import { recordStore } from '#shared/firestore/records.ts';
import { serverTime } from '#shared/firestore/server-time.ts';
import { viewStore } from '#shared/firestore/views.ts';

import { makeHandler } from '../../../functions/discovery/handler.ts';

export const TTL = { minSeconds: 1, maxSeconds: 86_400, defaultSeconds: 300 };

export const publication = (host: string, over: Partial<Publication> = {}): Publication => ({
  endpoint: {
    id: randomUUID(),
    host,
    port: 3128,
    scheme: 'http',
    instanceId: '42',
    credentialsVersion: '',
  },
  verdict: { state: 'Healthy', since: 1, checkedAt: 1, outcome: 'Ok' },
  publishedAt: 1,
  zone: 'europe-west1-b',
  ...over,
});

export const proxyRecord = (over: Partial<ProxyRecord> = {}): ProxyRecord => {
  const uid = over.ref?.uid ?? randomUUID();
  return {
    ref: { namespace: 'crawlers', name: `proxy-${uid.slice(0, 8)}`, uid },
    installation: 'test',
    provider: 'gcp',
    generation: 1,
    labels: { pool: 'retail' },
    maxLeases: 5,
    cordoned: false,
    deleting: false,
    drainTimeoutSeconds: 300,
    healthCheck: DEFAULT_HEALTH_CHECK,
    serving: publication('203.0.113.7'),
    draining: [],
    machines: [],
    incarnation: 1,
    gone: false,
    ...over,
  };
};

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

const answerOf = ({ status, headers = {}, body }: HttpReply): Answer => ({
  status,
  headers,
  body: isObject(body) ? body : {},
});

export interface CallOptions {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Calls a handler as the framework would. */
export const call = async (
  handler: HttpHandler,
  method: string,
  target: string,
  { body, headers = {} }: CallOptions = {},
): Promise<Answer> => {
  const [path = '', query = ''] = target.split('?');
  const bytes = body === undefined ? new Uint8Array() : new TextEncoder().encode(JSON.stringify(body));
  return answerOf(
    await handler({
      method,
      path,
      query: new URLSearchParams(query),
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      body: bytes,
    }),
  );
};

export const acquire = (handler: HttpHandler, body: object = {}, headers: Record<string, string> = {}) =>
  call(handler, 'POST', '/v1/leases', { body: { holder: 'crawler-1', ...body }, headers });

/** '' when the answer holds no lease. */
export const leaseIdOf = ({ body }: Answer): string =>
  typeof body['leaseId'] === 'string' ? body['leaseId'] : '';

/** A token as the platform leaves it: claims, and no signature worth the name. */
export const tokenOf = (email: string): Record<string, string> => ({
  authorization: `Bearer e30.${Buffer.from(JSON.stringify({ email })).toString('base64url')}.SIGNATURE_REMOVED`,
});

export interface InstanceOptions {
  readonly clock?: Clock;
  readonly namespaces?: readonly string[];
  /** Wraps the store of this instance: faults and spies. */
  readonly wrap?: (store: LeaseStore) => LeaseStore;
  /** A client of its own; the instance takes every call to the database over it. */
  readonly over?: Firestore;
  readonly guard?: Guard;
}

const noop = (): void => undefined;

/** A database of its own, with as many instances of discovery as a test wants. */
export const openFleet = (projectId = `t${randomBytes(6).toString('hex')}`) => {
  process.env['FIRESTORE_EMULATOR_HOST'] = inject('emulators').firestore;
  const db = openFirestore({ projectId });
  const secrets = openFirestore({ projectId, databaseId: 'credentials' });
  const probes: ProbeMessage[] = [];
  const lines: string[] = [];
  const log = makeLog((line) => lines.push(line));

  const instance = (options: InstanceOptions = {}): HttpHandler => {
    const {
      clock = systemClock,
      namespaces = ['*'],
      wrap,
      over = db,
      guard = makeGuard(1_000, noop),
    } = options;
    const time = serverTime(clock);
    const idempotency = idempotencyStore(over);
    const leases = guarded(leaseStore(over, time, idempotency), guard);
    return makeHandler({
      leases: wrap ? wrap(leases) : leases,
      idempotency,
      views: guarded(viewStore(over, time), guard),
      records: guarded(recordStore(over), guard),
      installation: 'test',
      credentials: credentialStore(secrets),
      time,
      publisher: {
        probe: (message) => {
          probes.push(message);
          return Promise.resolve();
        },
      },
      namespaces,
      ttl: TTL,
      clock,
      ids: systemIds,
      log,
      metrics: noMetrics,
    });
  };

  return {
    projectId,
    db,
    /** Another client of this database, through another port. */
    clientVia: (port: number): Firestore => {
      process.env['FIRESTORE_EMULATOR_HOST'] = `127.0.0.1:${port}`;
      try {
        return openFirestore({ projectId });
      } finally {
        process.env['FIRESTORE_EMULATOR_HOST'] = inject('emulators').firestore;
      }
    },
    secretsDb: secrets,
    records: recordStore(db),
    credentials: credentialStore(secrets),
    probes,
    lines,
    instance,
    close: async (): Promise<void> => {
      await Promise.all([closeFirestore(db), closeFirestore(secrets)]);
    },
  };
};
export type Fleet = ReturnType<typeof openFleet>;

/** Calls `check` until it answers something, or fails after `ms`. */
export const eventually = async <T>(check: () => Promise<T | undefined>, ms = 10_000): Promise<T> => {
  const until = performance.now() + ms;
  for (;;) {
    const found = await check();
    if (found !== undefined) return found;
    if (performance.now() > until) throw new Error(`not within ${ms} ms`);
  }
};
