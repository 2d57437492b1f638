/** Shapes of stored documents, checked on every read: what another version of the code wrote must not be trusted blindly. */

import { z } from 'zod';

import { CLOSED_REASONS, type Gate } from '#shared/domain/gate.ts';
import type { Endpoint } from '#shared/domain/endpoint.ts';
import type { HealthCheck, ProxyRef } from '#shared/domain/proxy.ts';
import type {
  DrainingPublication,
  Loss,
  MachineFailure,
  MachineIntent,
  ProxyRecord,
  Publication,
} from '#shared/domain/record.ts';
import { PROBE_OUTCOMES, type Verdict } from '#shared/domain/verdict.ts';

const proxyRef: z.ZodType<ProxyRef> = z.object({ namespace: z.string(), name: z.string(), uid: z.string() });

const providerName = z.enum(['gcp', 'kubernetes', 'External']);

const labels = z.record(z.string(), z.string());

export const endpointSchema: z.ZodType<Endpoint> = z.object({
  id: z.string(),
  host: z.string(),
  port: z.number(),
  scheme: z.enum(['http', 'https']),
  instanceId: z.string(),
  credentialsVersion: z.string(),
});

const verdict: z.ZodType<Verdict> = z.object({
  state: z.enum(['Unknown', 'Healthy', 'Unhealthy']),
  since: z.number(),
  checkedAt: z.number(),
  outcome: z.enum(PROBE_OUTCOMES).exactOptional(),
  exitAddress: z.string().exactOptional(),
});

const publicationFields = {
  endpoint: endpointSchema,
  verdict,
  publishedAt: z.number(),
  machine: z.string().exactOptional(),
  zone: z.string().exactOptional(),
  providerID: z.string().exactOptional(),
  ownExit: z.boolean().exactOptional(),
};
const publication: z.ZodType<Publication> = z.object(publicationFields);
const draining: z.ZodType<DrainingPublication> = z.object({ ...publicationFields, until: z.number() });

const machineFailure: z.ZodType<MachineFailure> = z.object({
  behaviour: z.enum([
    'CapacityUnavailable',
    'QuotaExceeded',
    'InvalidSpec',
    'Conflict',
    'Transient',
    'Unauthorised',
  ]),
  code: z.string(),
  message: z.string(),
  count: z.number(),
  retryAt: z.number(),
  zones: z.array(z.string()).exactOptional(),
});

const loss: z.ZodType<Loss> = z.object({
  reason: z.enum(['MachineGone', 'MachineStopped']),
  message: z.string(),
  count: z.number(),
  notBefore: z.number(),
});

const machineIntent: z.ZodType<MachineIntent> = z.object({
  name: z.string(),
  hash: z.string(),
  incarnation: z.number(),
  zones: z.array(z.string()),
  instanceId: z.string().exactOptional(),
  deleteRequestedAt: z.number().exactOptional(),
  operation: z.object({ zone: z.string(), name: z.string(), startedAt: z.number() }).exactOptional(),
  askedAt: z.number().exactOptional(),
  failure: machineFailure.exactOptional(),
  exhausted: z.record(z.string(), z.number()).exactOptional(),
  insteadOf: loss.exactOptional(),
  yielded: z.object({ host: z.string(), at: z.number() }).exactOptional(),
});

const healthCheck: z.ZodType<HealthCheck> = z.object({
  intervalSeconds: z.number(),
  timeoutSeconds: z.number(),
  failureThreshold: z.number(),
  successThreshold: z.number(),
  url: z.string(),
});

export const recordSchema: z.ZodType<ProxyRecord> = z.object({
  ref: proxyRef,
  installation: z.string(),
  provider: providerName,
  generation: z.number(),
  labels,
  maxLeases: z.number(),
  cordoned: z.boolean(),
  deleting: z.boolean(),
  drainTimeoutSeconds: z.number(),
  healthCheck,
  serving: publication.exactOptional(),
  candidate: publication.exactOptional(),
  draining: z.array(draining),
  machines: z.array(machineIntent),
  incarnation: z.number(),
  credentials: z.array(z.string()).exactOptional(),
  replacement: z
    .object({
      at: z.number(),
      granted: z.boolean(),
      hash: z.string().exactOptional(),
      stuck: z.boolean().exactOptional(),
      held: z.boolean().exactOptional(),
    })
    .exactOptional(),
  wakeAt: z.number().exactOptional(),
  wakeReason: z.string().exactOptional(),
  traceparent: z.string().exactOptional(),
  gone: z.boolean(),
});

export const gateSchema: z.ZodType<Gate> = z.object({
  endpoint: endpointSchema.exactOptional(),
  open: z.boolean(),
  closedReason: z.enum(CLOSED_REASONS).exactOptional(),
  draining: z.array(z.object({ endpointId: z.string(), until: z.number() })),
  maxLeases: z.number(),
  proxy: z.object({ ref: proxyRef, labels, provider: providerName, zone: z.string().exactOptional() }),
});
