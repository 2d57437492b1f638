/** Leases and proxies as the API shows them. */

import { problem, type HttpReply } from '#shared/app/http.ts';
import { isAddress, urlHost } from '#shared/domain/endpoint.ts';
import type { Gate } from '#shared/domain/gate.ts';
import type { EndReason, Lease, LeaseDocument } from '#shared/domain/lease.ts';
import { leasable, leasesOn, type LeaseState } from '#shared/domain/lease-standing.ts';
import type { ProxyRef } from '#shared/domain/proxy.ts';
import type { Credentials } from '#shared/firestore/credentials.ts';

import type { LeaseAnswer, LeaseSummary, ProxyItem } from './schemas.ts';

const moment = (ms: number): string => new Date(ms).toISOString();

/** Never cached on the way: an answer may hold credentials, and what is leasable changes. */
export const ok = (status: number, body: unknown): HttpReply => ({
  status,
  headers: { 'cache-control': 'no-store' },
  body,
});

export const leaseSummary = (lease: Lease, state: LeaseState, proxy: ProxyRef): LeaseSummary => {
  const { host, port, scheme } = lease.endpoint;
  return {
    leaseId: lease.id,
    holder: lease.holder,
    fencingToken: lease.fence,
    proxy: { namespace: proxy.namespace, name: proxy.name, uid: proxy.uid },
    host,
    ...(isAddress(host) ? { ip: host } : {}),
    port,
    scheme,
    state,
    ttlSeconds: lease.ttlSeconds,
    grantedAt: moment(lease.grantedAt),
    expiresAt: moment(lease.expiresAt),
  };
};

export const proxyUrl = (
  { host, port, scheme }: Pick<LeaseSummary, 'host' | 'port' | 'scheme'>,
  credentials: Credentials | undefined,
): string => {
  const user = credentials
    ? `${encodeURIComponent(credentials.username)}:${encodeURIComponent(credentials.password)}@`
    : '';
  return `${scheme}://${user}${urlHost(host)}:${port}`;
};

/** With credentials: for the holder only. */
export const leaseAnswer = (summary: LeaseSummary, credentials: Credentials | undefined): LeaseAnswer => ({
  ...summary,
  ...(credentials ? { username: credentials.username, password: credentials.password } : {}),
  url: proxyUrl(summary, credentials),
});

/** `undefined` when the proxy cannot be leased now. With `counted`, the live leases are counted. */
export const proxyItem = (
  gate: Gate,
  counted: { readonly document: LeaseDocument; readonly now: number } | undefined,
): ProxyItem | undefined => {
  const endpoint = leasable({ gate });
  if (!endpoint) return undefined;
  const { proxy, maxLeases } = gate;
  const { host, port, scheme, id } = endpoint;
  const live = counted && leasesOn(counted.document, id, counted.now).length;
  return {
    proxy: { namespace: proxy.ref.namespace, name: proxy.ref.name, uid: proxy.ref.uid },
    labels: { ...proxy.labels },
    provider: proxy.provider,
    ...(proxy.zone === undefined ? {} : { zone: proxy.zone }),
    host,
    port,
    scheme,
    maxLeases,
    ...(live === undefined ? {} : { live, free: Math.max(0, maxLeases - live) }),
  };
};

const DETAIL: Readonly<Record<EndReason | 'Unknown', string>> = {
  Released: 'The lease was released.',
  Expired: 'The lease expired.',
  Drained: 'The endpoint of the lease was replaced or deleted, and its time to drain is over.',
  EndpointGone: 'The endpoint of the lease is gone; a new lease gets another one.',
  Unknown: 'There is no such lease, or it ended long ago.',
};

/** 410 with the true reason. */
export const gone = (reason: EndReason | 'Unknown'): HttpReply => {
  const code = reason === 'EndpointGone' || reason === 'Unknown' ? reason : 'LeaseEnded';
  return problem(410, code, DETAIL[reason], { reason });
};

export const leaseNotFound = (): HttpReply =>
  problem(404, 'NotFound', 'There is no live lease with this id.');
