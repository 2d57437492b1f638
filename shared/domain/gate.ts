/** The gate in `leases/{uid}`: the part of a lease document that decides whether an acquire may be granted. */

import type { Endpoint } from './endpoint.ts';
import type { ProviderName, ProxyRef } from './proxy.ts';
import type { ProxyRecord } from './record.ts';

export const CLOSED_REASONS = [
  'NoEndpoint',
  'Unhealthy',
  'NotYetHealthy',
  'Cordoned',
  'Deleting',
  'Gone',
] as const;
export type ClosedReason = (typeof CLOSED_REASONS)[number];

export interface Gate {
  /** Absent = there is nothing to lease, whatever the other fields say. */
  readonly endpoint?: Endpoint;
  readonly open: boolean;
  readonly closedReason?: ClosedReason;
  /** Endpoints whose leases run on, until (ms) at the latest. */
  readonly draining: readonly { readonly endpointId: string; readonly until: number }[];
  /** Bound of live leases on `endpoint`; draining ones do not count. */
  readonly maxLeases: number;
  /** What selectors judge, so that one query over gates can answer exactly. */
  readonly proxy: {
    readonly ref: ProxyRef;
    readonly labels: Readonly<Record<string, string>>;
    readonly provider: ProviderName;
    readonly zone?: string;
  };
}

/** First finding wins; undefined = open. */
const closedReason = (record: ProxyRecord): ClosedReason | undefined => {
  if (record.gone) return 'Gone';
  if (record.deleting) return 'Deleting';
  if (!record.serving) return 'NoEndpoint';
  if (record.cordoned) return 'Cordoned';
  if (record.serving.verdict.state === 'Unhealthy') return 'Unhealthy';
  if (record.serving.verdict.state === 'Unknown') return 'NotYetHealthy';
  return undefined;
};

/** The one gate that a record allows. Writers of the record write this with it, in the same batch. */
export const gateOf = (record: ProxyRecord): Gate => {
  const reason = closedReason(record);
  const zone = record.serving?.zone;
  return {
    ...(record.serving && !record.gone ? { endpoint: record.serving.endpoint } : {}),
    open: reason === undefined,
    ...(reason ? { closedReason: reason } : {}),
    draining: record.draining.map(({ endpoint, until }) => ({ endpointId: endpoint.id, until })),
    maxLeases: record.maxLeases,
    proxy: {
      ref: record.ref,
      labels: record.labels,
      provider: record.provider,
      ...(zone === undefined ? {} : { zone }),
    },
  };
};
