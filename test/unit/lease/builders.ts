import type { Gate } from '#shared/domain/gate.ts';
import type { Lease, LeaseDocument } from '#shared/domain/lease.ts';
import type { LeaseOperation } from '#shared/domain/lease-rules.ts';

export const UID = '11111111-2222-3333-4444-555555555555';

export const endpoint = (id = 'e1', host = '203.0.113.7') => ({
  id,
  host,
  port: 3128,
  scheme: 'http' as const,
  instanceId: '42',
  credentialsVersion: '',
});

export const gate = (over: Partial<Gate> = {}): Gate => ({
  endpoint: endpoint(),
  open: true,
  draining: [],
  maxLeases: 2,
  proxy: { ref: { namespace: 'crawlers', name: 'a', uid: UID }, labels: {}, provider: 'gcp', zone: 'z-a' },
  ...over,
});

export const leaseDocument = (over: Partial<LeaseDocument> = {}): LeaseDocument => ({
  gate: gate(),
  freeAt: 0,
  leases: {},
  ended: [],
  fence: 0,
  holders: [],
  ...over,
});

/** The lease id whose random part is `n`. */
export const leaseId = (n: number): string => `${UID}.${n.toString(16).padStart(32, '0')}`;

export const lease = (n: number, over: Partial<Lease> = {}): Lease => ({
  id: leaseId(n),
  endpoint: { id: 'e1', host: '203.0.113.7', port: 3128, scheme: 'http' },
  holder: 'h',
  caller: '',
  fence: n,
  grantedAt: 0,
  expiresAt: 60_000,
  ttlSeconds: 60,
  ...over,
});

export const leases = (...all: readonly Lease[]): LeaseDocument['leases'] =>
  Object.fromEntries(all.map((one) => [one.id.slice(UID.length + 1), one]));

export const acquireOf = (n: number, ttlSeconds = 60): LeaseOperation => ({
  kind: 'acquire',
  id: leaseId(n),
  holder: 'h',
  caller: '',
  ttlSeconds,
});
export const renewOf = (n: number, ttlSeconds?: number): LeaseOperation => ({
  kind: 'renew',
  id: leaseId(n),
  caller: '',
  ttlSeconds,
});
export const releaseOf = (n: number): LeaseOperation => ({ kind: 'release', id: leaseId(n), caller: '' });
export const reportOf = (n: number): LeaseOperation => ({
  kind: 'report',
  id: leaseId(n),
  caller: '',
  outcome: 'failed',
  target: undefined,
});
