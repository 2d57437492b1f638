/** What the API takes and gives: the one source of its checks and of its OpenAPI document. */

import { z } from 'zod';

import { REPORT_OUTCOMES } from '#shared/domain/lease.ts';
import { LEASE_STATES } from '#shared/domain/lease-standing.ts';

export interface TtlLimits {
  readonly minSeconds: number;
  readonly maxSeconds: number;
  readonly defaultSeconds: number;
}

const DNS_LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const DNS_NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;
// Printable characters of any script: no control characters, and no half of a surrogate pair.
const PRINTABLE = /^[^\p{Cc}\p{Cs}]+$/u;

const holder = z
  .string()
  .min(1)
  .max(253)
  .regex(PRINTABLE, 'must consist of printable characters')
  .describe('Who holds the lease, in the words of the caller; the caller finds its leases again by it.');
const labelSelector = z
  .string()
  .max(4096)
  .describe('A Kubernetes label selector: equality, sets, existence.');
const namespace = z.string().max(63).regex(DNS_LABEL, 'must be a namespace name');
const proxyName = z.string().max(253).regex(DNS_NAME, 'must be the name of a Proxy');
const zone = z.string().min(1).max(63).regex(DNS_LABEL, 'must be a zone name');
const provider = z.enum(['gcp', 'kubernetes', 'External']);
const uid = z
  .string()
  .max(64)
  .regex(/^[0-9A-Za-z-]+$/, 'must be the UID of a Proxy');

const ttlSeconds = ({ minSeconds, maxSeconds }: TtlLimits) => z.int().min(minSeconds).max(maxSeconds);

/** Query parameters and bodies. Unknown ones are refused, so that a misspelt field is not silently ignored. */
export const inputSchemas = (ttl: TtlLimits) => ({
  listProxies: z.strictObject({
    labelSelector: labelSelector.optional(),
    namespace: namespace.optional(),
    zone: zone.optional(),
    provider: provider.optional(),
    limit: z
      .string()
      .regex(/^([1-9]\d{0,2}|1000)$/, 'must be a number from 1 to 1000')
      .optional()
      .describe('Entries per page, 1 to 1000; default 500.'),
    continue: z
      .string()
      .min(1)
      .max(1024)
      .optional()
      .describe('`continue` of the page before, with the same other parameters.'),
    free: z
      .enum(['true', 'false'])
      .optional()
      .describe('`true` adds how many leases are live and how many more fit.'),
  }),
  acquire: z.strictObject({
    holder,
    ttlSeconds: ttlSeconds(ttl).default(ttl.defaultSeconds),
    labelSelector: labelSelector.optional(),
    namespace: namespace.optional(),
    zone: zone.optional(),
    provider: provider.optional(),
    proxy: z.strictObject({ namespace, name: proxyName }).optional().describe('Exactly this Proxy.'),
    exclude: z.array(uid).max(500).optional().describe('UIDs of Proxies that are not wanted.'),
  }),
  listLeases: z.strictObject({ holder }),
  renew: z.strictObject({
    ttlSeconds: ttlSeconds(ttl).optional().describe('Default: as granted or last renewed.'),
  }),
  report: z.strictObject({
    outcome: z.enum(REPORT_OUTCOMES),
    target: z
      .string()
      .min(1)
      .max(2048)
      .regex(PRINTABLE, 'must consist of printable characters')
      .optional()
      .describe('The host or URL that was fetched.'),
  }),
  nothing: z.strictObject({}),
});
export type InputSchemas = ReturnType<typeof inputSchemas>;
export type AcquireInput = z.output<InputSchemas['acquire']>;
export type ListProxiesInput = z.output<InputSchemas['listProxies']>;

export const IDEMPOTENCY_KEY = z
  .string()
  .min(1)
  .max(255)
  .regex(/^[\x21-\x7e]+$/, 'must consist of visible ASCII characters');

const proxyRef = z.strictObject({ namespace: z.string(), name: z.string(), uid: z.string() });
const scheme = z.enum(['http', 'https']);
const port = z.int().min(1).max(65_535);
const moment = z.iso.datetime();

const proxyItem = z
  .strictObject({
    proxy: proxyRef,
    labels: z.record(z.string(), z.string()),
    provider,
    zone: z.string().optional(),
    host: z.string().min(1),
    port,
    scheme,
    maxLeases: z.int(),
    live: z.int().optional(),
    free: z.int().optional(),
  })
  .meta({ id: 'ProxyItem' });

const leaseFields = {
  leaseId: z.string(),
  holder: z.string(),
  fencingToken: z
    .int()
    .describe('Grows with every lease of a proxy, across its deletion and re-creation too.'),
  proxy: proxyRef,
  host: z.string().min(1),
  ip: z.string().optional().describe('`host`, when it is an address.'),
  port,
  scheme,
  state: z.enum(LEASE_STATES),
  ttlSeconds: z.int(),
  grantedAt: moment.describe("Firestore's time at the grant."),
  expiresAt: moment.describe('From then on the lease is over; capped at the end of a drain.'),
};
const lease = z
  .strictObject({
    ...leaseFields,
    username: z.string().optional(),
    password: z.string().optional(),
    url: z.string().describe('The proxy as HTTP clients take it, credentials included.'),
  })
  .meta({ id: 'Lease' });
/** Without credentials: for whoever has the lease already, and for lists. */
const leaseSummary = z.strictObject(leaseFields).meta({ id: 'LeaseSummary' });

const problem = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    code: z.string().describe('Stable; what programs test.'),
    detail: z.string(),
    requestId: z.string().describe('As in `X-Request-Id`; what to tell the operators.'),
    errors: z.array(z.strictObject({ field: z.string(), detail: z.string() })).optional(),
    reason: z.string().optional().describe('410: why the lease is over.'),
    counts: z.record(z.string(), z.int()).optional().describe('NoneAvailable: matching Proxies by cause.'),
  })
  .meta({ id: 'Problem' });

export const outputSchemas = {
  proxies: z.strictObject({ items: z.array(proxyItem), continue: z.string().optional() }),
  lease,
  leaseSummary,
  leases: z.strictObject({ items: z.array(leaseSummary) }),
  problem,
  status: z.strictObject({ status: z.string() }),
};
export type LeaseAnswer = z.output<typeof lease>;
export type LeaseSummary = z.output<typeof leaseSummary>;
export type ProxyItem = z.output<typeof proxyItem>;
