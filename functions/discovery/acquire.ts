/** POST /v1/leases: one lease for one request, and the same one for the same request under the same `Idempotency-Key`. */

import { problem, type HttpReply } from '#shared/app/http.ts';
import type { Log } from '#shared/app/log.ts';
import type { Metrics } from '#shared/app/metrics.ts';
import type { Gate } from '#shared/domain/gate.ts';
import type { Lease } from '#shared/domain/lease.ts';
import { findLive, uidOfLease } from '#shared/domain/lease-rules.ts';
import type { LeaseState } from '#shared/domain/lease-standing.ts';
import type { Selector } from '#shared/domain/selector.ts';
import {
  bodyHash,
  idempotencyId,
  type IdempotencyEntry,
  type IdempotencyStore,
} from '#shared/firestore/idempotency.ts';
import type { LeaseStore } from '#shared/firestore/leases.ts';
import type { ServerTime } from '#shared/firestore/server-time.ts';

import { gone, leaseAnswer, leaseSummary, ok } from './answers.ts';
import type { CredentialCache } from './credential-cache.ts';
import type { GroupCommit } from './group-commit.ts';
import { oneAtATime } from './one-at-a-time.ts';
import type { AcquireInput } from './schemas.ts';
import type { LeaseRequest, Selection } from './selection.ts';

export interface AcquireOptions {
  readonly selection: Selection;
  readonly commits: GroupCommit;
  readonly leases: Pick<LeaseStore, 'read'>;
  readonly idempotency: Pick<IdempotencyStore, 'read'>;
  readonly credentials: CredentialCache;
  readonly time: ServerTime;
  readonly log: Log;
  readonly metrics: Metrics;
}

export interface AcquireCall {
  readonly input: AcquireInput;
  readonly selector: Selector;
  readonly caller: string;
  readonly key: string | undefined;
}

/** Equal for requests that ask for the same thing, however their JSON is written. */
const canonical = (input: AcquireInput): string => {
  const { holder, ttlSeconds, labelSelector, namespace, zone, provider, proxy, exclude } = input;
  return JSON.stringify([
    holder,
    ttlSeconds,
    labelSelector ?? '',
    namespace ?? null,
    zone ?? null,
    provider ?? null,
    proxy ? [proxy.namespace, proxy.name] : null,
    [...new Set(exclude)].toSorted(),
  ]);
};

const requestOf = ({ input, selector, caller, key }: AcquireCall): LeaseRequest => {
  const { holder, ttlSeconds, namespace, zone, provider, proxy, exclude } = input;
  return {
    holder,
    caller,
    ttlSeconds,
    wanted: { selector, namespace, zone, provider, proxy },
    exclude: new Set(exclude),
    ...(key === undefined
      ? {}
      : { entry: { id: idempotencyId(caller, key), bodyHash: bodyHash(canonical(input)) } }),
  };
};

const noMatch = (): HttpReply => problem(404, 'NoMatch', 'No Proxy matches, whatever its health.');

const keyReused = (): HttpReply =>
  problem(422, 'IdempotencyKeyReused', 'This Idempotency-Key was used for another request.');

export const makeAcquire = (options: AcquireOptions) => {
  const { selection, commits, leases, idempotency, credentials, time, log, metrics } = options;
  const underKey = oneAtATime();

  const release = async ({ id, caller }: Lease, uid: string): Promise<void> => {
    try {
      await commits.submit(uid, { operation: { kind: 'release', id, caller } });
    } catch (error) {
      log.error('a lease that could not be answered could not be released', error);
    }
  };

  const answer = async (lease: Lease, state: LeaseState, gate: Gate): Promise<HttpReply> => {
    const { endpoint, proxy } = gate;
    const asksForNone = endpoint?.id === lease.endpoint.id && endpoint.credentialsVersion === '';
    const found = asksForNone ? undefined : await credentials.read(lease.endpoint.id);
    return ok(201, leaseAnswer(leaseSummary(lease, state, proxy.ref), found));
  };

  /** The lease that was granted under this key before, as it stands now. */
  const replay = async (entry: IdempotencyEntry, request: LeaseRequest): Promise<HttpReply> => {
    if (entry.bodyHash !== request.entry?.bodyHash) return keyReused();
    const uid = uidOfLease(entry.leaseId);
    const stored = uid === undefined ? undefined : await leases.read(uid);
    if (!stored) return gone('Unknown');
    const found = findLive(stored.document, { id: entry.leaseId, caller: request.caller }, time.now());
    if (found.kind === 'ended') return gone(found.reason);
    return answer(found.lease, found.state, stored.document.gate);
  };

  const refuse = async (request: LeaseRequest): Promise<HttpReply> => {
    const { matching, counts, retryAfterSeconds } = await selection.refusal(request);
    const code = matching === 0 ? 'NoMatch' : 'NoneAvailable';
    metrics.count('lease_refused', { code });
    if (matching === 0) return noMatch();
    const headers = { 'retry-after': String(retryAfterSeconds) };
    return problem(503, code, 'Proxies match, but none can be leased now.', { counts }, headers);
  };

  const run = async (request: LeaseRequest): Promise<HttpReply> => {
    const found = await selection.grant(request);
    if (found?.kind === 'replay') return replay(found.entry, request);
    if (found) {
      metrics.count('lease_granted');
      try {
        return await answer(found.lease, found.state, found.gate);
      } catch (error) {
        // Under a key the next try gets this very lease; without one nobody could ever use it.
        if (!request.entry) await release(found.lease, found.gate.proxy.ref.uid);
        throw error;
      }
    }
    if (request.entry) {
      const { remembered } = await idempotency.read([request.entry.id]);
      const entry = remembered.get(request.entry.id);
      if (entry) return replay(entry, request);
    }
    return refuse(request);
  };

  return (call: AcquireCall): Promise<HttpReply> => {
    const request = requestOf(call);
    return request.entry ? underKey(request.entry.id, () => run(request)) : run(request);
  };
};
