/** A fleet of healthy records, and a handler of health over stores in memory. */

import { createSecureContext } from 'node:tls';

import { Timestamp } from '@google-cloud/firestore';

import { systemClock } from '#shared/app/clock.ts';
import type { HttpReply } from '#shared/app/http.ts';
import { systemIds } from '#shared/app/ids.ts';
import { makeLog } from '#shared/app/log.ts';
import { noMetrics } from '#shared/app/metrics.ts';
import { DEFAULT_HEALTH_CHECK } from '#shared/domain/proxy.ts';
import type { ProxyRecord } from '#shared/domain/record.ts';
import type { StoredRecord } from '#shared/firestore/records.ts';

import { makeHandler } from '../../../functions/health/handler.ts';
import type { Parts } from '../../../functions/health/parts.ts';
import { makeProber } from '../../../functions/health/probe/prober.ts';
import { hostOf, targetOf } from './probes.ts';
import type { Servers } from './processes.ts';

const uidOf = (index: number): string => {
  const hex = ((index + 1) * 2_654_435_761).toString(16).padStart(12, '0');
  return `${hex.slice(-8)}-0000-4000-8000-${index.toString(16).padStart(12, '0')}`;
};

export const INSTALLATION = 'bench';

/** A healthy External proxy at an address of its own. */
export const healthyRecord = (index: number, port: number): ProxyRecord => ({
  ref: { namespace: 'crawlers', name: `proxy-${index}`, uid: uidOf(index) },
  installation: INSTALLATION,
  provider: 'External',
  generation: 1,
  labels: {},
  maxLeases: 5,
  cordoned: false,
  deleting: false,
  drainTimeoutSeconds: 300,
  healthCheck: DEFAULT_HEALTH_CHECK,
  serving: {
    endpoint: {
      id: `endpoint-${index}`,
      host: hostOf(index),
      port,
      scheme: 'http',
      instanceId: '',
      credentialsVersion: '',
    },
    verdict: { state: 'Healthy', since: 1, checkedAt: 1, exitAddress: '127.0.0.1' },
    publishedAt: 1,
  },
  draining: [],
  machines: [],
  incarnation: 0,
  gone: false,
});

/** Stores that keep records in memory; a round of them costs no call. */
export const memoryStores = (
  records: readonly ProxyRecord[],
): Pick<Parts, 'records' | 'rounds' | 'views'> => {
  const stored = new Map<string, StoredRecord>(
    records.map((record) => [
      record.ref.uid,
      { record, version: { updateTime: Timestamp.fromMillis(1) }, readTime: Date.now() },
    ]),
  );
  return {
    records: {
      read: (uid) => Promise.resolve(stored.get(uid)),
      write: (record, version) => {
        stored.set(record.ref.uid, { record, version, readTime: Date.now() });
        return Promise.resolve(version);
      },
      probed: () => Promise.resolve({ records: [...stored.values()], unreadable: [], readTime: Date.now() }),
    },
    rounds: {
      claim: () =>
        Promise.resolve({
          now: Date.now(),
          state: { flips: [], flipsId: '', massFailures: 0, doubts: [] },
          save: () => Promise.resolve(),
        }),
    },
    views: { write: () => Promise.resolve(0) },
  };
};

export interface Fleet {
  round(): Promise<HttpReply>;
  /** Moments (monotonic) at which a probe of a healthy proxy last ended well. */
  lastSuccess(): number;
}

/** Probes by CONNECT with TLS, as in production. */
export const makeFleet = (
  stores: Pick<Parts, 'records' | 'rounds' | 'views'>,
  { authority, tlsPort }: Servers,
  shards = 1,
): Fleet => {
  const real = makeProber(createSecureContext({ ca: [authority.caPem] }), systemIds);
  let lastSuccess = 0;
  const handler = makeHandler({
    ...stores,
    installation: INSTALLATION,
    credentials: { read: () => Promise.resolve(undefined) },
    publisher: { change: () => Promise.resolve() },
    prober: {
      async probe(via, targets, budgetMs) {
        const reply = await real.probe(via, targets, budgetMs);
        if (via && reply.outcome === 'Ok') lastSuccess = performance.now();
        return reply;
      },
    },
    targets: [targetOf(`https://127.0.0.1:${tlsPort}/`)],
    shards,
    probesAtOnce: 64,
    clock: systemClock,
    ids: systemIds,
    log: makeLog(() => undefined),
    metrics: noMetrics,
  });
  return {
    lastSuccess: () => lastSuccess,
    round: () =>
      handler({
        method: 'POST',
        path: '/',
        query: new URLSearchParams(),
        headers: {},
        body: new Uint8Array(),
      }),
  };
};
