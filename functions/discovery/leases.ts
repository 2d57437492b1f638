/** Calls on leases that exist: get, find one's own, renew, report, release. */

import type { HttpReply } from '#shared/app/http.ts';
import type { Log } from '#shared/app/log.ts';
import type { Metrics } from '#shared/app/metrics.ts';
import type { ReportOutcome } from '#shared/domain/lease.ts';
import { findLive, uidOfLease } from '#shared/domain/lease-rules.ts';
import type { ProbeMessage } from '#shared/domain/message.ts';
import { holderKey, type LeaseStore, type StoredLeases } from '#shared/firestore/leases.ts';
import type { ServerTime } from '#shared/firestore/server-time.ts';

import { gone, leaseAnswer, leaseNotFound, leaseSummary, ok } from './answers.ts';
import type { CredentialCache } from './credential-cache.ts';
import type { SubmissionOutcome } from './commit-batch.ts';
import type { GroupCommit } from './group-commit.ts';
import { readable } from './fleet.ts';
import type { LeaseSummary } from './schemas.ts';

export interface LeaseCallOptions {
  readonly commits: GroupCommit;
  readonly leases: Pick<LeaseStore, 'read' | 'heldBy'>;
  readonly credentials: CredentialCache;
  readonly publisher: { probe(message: ProbeMessage): Promise<void> };
  readonly time: ServerTime;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** Reports that may mean that the proxy does not work. They ask for a probe; the probe judges. */
const SUSPICIOUS: ReadonlySet<ReportOutcome> = new Set(['failed', 'blocked']);

/** The answer to a lease that is not live; another caller's lease is like one that never was. */
const notLive = (outcome: SubmissionOutcome): HttpReply =>
  gone(outcome.kind === 'ended' ? outcome.reason : 'Unknown');

export const makeLeaseCalls = (options: LeaseCallOptions) => {
  const { commits, leases, credentials, publisher, time, log, metrics } = options;

  const get = async (id: string, caller: string): Promise<HttpReply> => {
    const uid = uidOfLease(id);
    const stored = uid === undefined ? undefined : await leases.read(uid);
    const found = stored && findLive(stored.document, { id, caller }, time.now());
    if (!stored || found?.kind !== 'live') return leaseNotFound();
    const { lease, state } = found;
    const secret = await credentials.read(lease.endpoint.id);
    return ok(200, leaseAnswer(leaseSummary(lease, state, stored.document.gate.proxy.ref), secret));
  };

  const ownIn = ({ document }: StoredLeases, holder: string, caller: string): readonly LeaseSummary[] =>
    Object.values(document.leases)
      .filter((lease) => lease.holder === holder)
      .flatMap(({ id }) => {
        const found = findLive(document, { id, caller }, time.now());
        return found.kind === 'live' ? [leaseSummary(found.lease, found.state, document.gate.proxy.ref)] : [];
      });

  const listOwn = async (holder: string, caller: string): Promise<HttpReply> => {
    const held = readable(await leases.heldBy(holderKey(caller, holder)), log);
    const items = held
      .flatMap((stored) => ownIn(stored, holder, caller))
      .toSorted((a, b) => a.grantedAt.localeCompare(b.grantedAt) || a.leaseId.localeCompare(b.leaseId));
    return ok(200, { items });
  };

  const renew = async (id: string, caller: string, ttlSeconds: number | undefined): Promise<HttpReply> => {
    const uid = uidOfLease(id);
    if (uid === undefined) return gone('Unknown');
    const outcome = await commits.submit(uid, { operation: { kind: 'renew', id, caller, ttlSeconds } });
    metrics.count('lease_renewed', { outcome: outcome.kind });
    if (outcome.kind !== 'renewed') return notLive(outcome);
    return ok(200, leaseSummary(outcome.lease, outcome.state, outcome.gate.proxy.ref));
  };

  const report = async (
    id: string,
    caller: string,
    { outcome, target }: { readonly outcome: ReportOutcome; readonly target: string | undefined },
  ): Promise<HttpReply> => {
    const uid = uidOfLease(id);
    if (uid === undefined) return gone('Unknown');
    const recorded = await commits.submit(uid, {
      operation: { kind: 'report', id, caller, outcome, target },
    });
    if (recorded.kind !== 'reported') return notLive(recorded);
    metrics.count('lease_reported', { outcome });
    if (SUSPICIOUS.has(outcome)) await publisher.probe({ uid, reason: 'report' });
    return ok(202, { status: 'recorded' });
  };

  /** Releasing what is not held is done already, unless the id cannot be one. */
  const release = async (id: string, caller: string): Promise<HttpReply> => {
    const uid = uidOfLease(id);
    if (uid === undefined) return leaseNotFound();
    const outcome = await commits.submit(uid, { operation: { kind: 'release', id, caller } });
    if (outcome.kind === 'released') metrics.count('lease_released');
    return { status: 204 };
  };

  return { get, listOwn, renew, report, release };
};
