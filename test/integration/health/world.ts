/** Instances of health over the Firestore emulator, and proxies for them to judge. */

import { randomBytes, randomUUID } from 'node:crypto';

import { inject } from 'vitest';

import { systemClock } from '#shared/app/clock.ts';
import { SystemError } from '#shared/app/errors.ts';
import type { HttpHandler, HttpReply } from '#shared/app/http.ts';
import { systemIds } from '#shared/app/ids.ts';
import { makeLog } from '#shared/app/log.ts';
import { noMetrics } from '#shared/app/metrics.ts';
import type { Endpoint } from '#shared/domain/endpoint.ts';
import type { ChangeMessage } from '#shared/domain/message.ts';
import { DEFAULT_HEALTH_CHECK, type HealthCheck } from '#shared/domain/proxy.ts';
import type { ProxyRecord, Publication } from '#shared/domain/record.ts';
import { START_GRACE_MS } from '#shared/domain/verdict-rules.ts';
import type { VerdictState } from '#shared/domain/verdict.ts';
import { closeFirestore, openFirestore } from '#shared/firestore/client.ts';
import { credentialStore } from '#shared/firestore/credentials.ts';
import { gateSchema } from '#shared/firestore/record-schema.ts';
import { recordStore } from '#shared/firestore/records.ts';
import { roundStore } from '#shared/firestore/rounds.ts';
import { viewWriter } from '#shared/firestore/views.ts';

import { makeHandler } from '../../../functions/health/handler.ts';
import type { Parts as HealthParts } from '../../../functions/health/parts.ts';
import type { Target } from '../../../functions/health/probe/target.ts';
import { startParts, type Parts } from './parts.ts';

export interface Instance {
  readonly handler: HttpHandler;
  /** What was published, and whether publishing works. */
  readonly nudges: ChangeMessage[];
  pubsubAway: boolean;
  /** Every log line. */
  readonly lines: string[];
}

export interface Publish {
  readonly place: Pick<Endpoint, 'host' | 'port'>;
  readonly state?: VerdictState;
  readonly exitAddress?: string;
  readonly ownExit?: boolean;
  readonly credentialsVersion?: string;
  /** True: long ago, so that no start grace holds. */
  readonly old?: boolean;
  readonly check?: Partial<HealthCheck>;
}

const QUICK: HealthCheck = { ...DEFAULT_HEALTH_CHECK, timeoutSeconds: 2, failureThreshold: 2 };

const publicationOf = (wanted: Publish): Publication => {
  const at = Date.now() - (wanted.old ? START_GRACE_MS + 1000 : 0);
  const { exitAddress, ownExit } = wanted;
  return {
    endpoint: {
      id: randomUUID(),
      scheme: 'http',
      instanceId: '',
      credentialsVersion: wanted.credentialsVersion ?? '',
      host: wanted.place.host,
      port: wanted.place.port,
    },
    verdict: {
      state: wanted.state ?? 'Unknown',
      since: at,
      checkedAt: at,
      ...(exitAddress === undefined ? {} : { exitAddress }),
    },
    publishedAt: at,
    ...(ownExit === undefined ? {} : { ownExit }),
  };
};

const recordOf = (wanted: Publish): ProxyRecord => {
  const uid = randomUUID();
  return {
    ref: { namespace: 'crawlers', name: `proxy-${uid.slice(0, 8)}`, uid },
    installation: 'test',
    provider: 'External',
    generation: 1,
    labels: {},
    maxLeases: 5,
    cordoned: false,
    deleting: false,
    drainTimeoutSeconds: 300,
    healthCheck: { ...QUICK, ...wanted.check },
    serving: publicationOf(wanted),
    draining: [],
    machines: [],
    incarnation: 0,
    gone: false,
  };
};

/** One empty database, with the servers that probes meet. */
export const startWorld = async () => {
  process.env['FIRESTORE_EMULATOR_HOST'] = inject('emulators').firestore;
  const projectId = `t${randomBytes(6).toString('hex')}`;
  const db = openFirestore({ projectId });
  const secrets = openFirestore({ projectId, databaseId: 'credentials' });
  const records = recordStore(db);
  const credentials = credentialStore(secrets);
  const parts: Parts = await startParts();
  // The emulator's first answers take their time; our own calls would give up on them.
  await db.collection('proxies').doc('none').get();

  const start = ({ target, ...over }: Partial<HealthParts> & { target?: Target } = {}): Instance => {
    const instance: Omit<Instance, 'handler'> = { nudges: [], pubsubAway: false, lines: [] };
    const handler = makeHandler({
      installation: 'test',
      records,
      rounds: roundStore(db),
      views: viewWriter(db),
      credentials,
      prober: parts.prober,
      targets: [target ?? parts.target],
      shards: 1,
      probesAtOnce: 64,
      clock: systemClock,
      ids: systemIds,
      log: makeLog((line) => instance.lines.push(line)),
      metrics: noMetrics,
      publisher: {
        change: (message) => {
          if (instance.pubsubAway) return Promise.reject(new SystemError('Transient', 'Pub/Sub is away'));
          instance.nudges.push(message);
          return Promise.resolve();
        },
      },
      ...over,
    });
    return Object.assign(instance, { handler });
  };

  return {
    parts,
    projectId,
    db,
    records,
    credentials,
    start,
    /** Stores a record with this as its serving endpoint. */
    async publish(wanted: Publish): Promise<ProxyRecord> {
      const record = recordOf(wanted);
      await records.create(record);
      return record;
    },
    async serving({ ref }: ProxyRecord): Promise<Publication | undefined> {
      return (await records.read(ref.uid))?.record.serving;
    },
    async gate({ ref }: ProxyRecord) {
      return gateSchema.parse((await db.collection('leases').doc(ref.uid).get()).get('gate'));
    },
    /** Names and update times of all documents, to see what was written. */
    async versions(): Promise<Record<string, string>> {
      const found: Record<string, string> = {};
      for (const name of ['proxies', 'leases', 'rounds']) {
        for (const { ref, updateTime } of (await db.collection(name).get()).docs)
          found[ref.path] = `${updateTime.seconds}.${updateTime.nanoseconds}`;
      }
      return found;
    },
    async close(): Promise<void> {
      await Promise.all([parts.close(), closeFirestore(db), closeFirestore(secrets)]);
    },
  };
};

export type World = Awaited<ReturnType<typeof startWorld>>;

const call = (handler: HttpHandler, path: string, body = ''): Promise<HttpReply> =>
  handler({
    method: 'POST',
    path,
    query: new URLSearchParams(),
    headers: {},
    body: new TextEncoder().encode(body),
  });

export const round = ({ handler }: Instance): Promise<HttpReply> => call(handler, '/');

/** Delivers a message of `proxy-probes`. */
export const deliver = ({ handler }: Instance, data: unknown, deliveryAttempt = 1): Promise<HttpReply> =>
  call(
    handler,
    '/probes',
    JSON.stringify({
      message: { data: Buffer.from(JSON.stringify(data)).toString('base64'), messageId: '1' },
      deliveryAttempt,
    }),
  );

export const deliverRaw = ({ handler }: Instance, body: string): Promise<HttpReply> =>
  call(handler, '/probes', body);
