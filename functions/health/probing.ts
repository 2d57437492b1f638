/** One probe of one publication: credentials, targets, and what the answer means. */

import type { Clock } from '#shared/app/clock.ts';
import type { Log } from '#shared/app/log.ts';
import type { Metrics } from '#shared/app/metrics.ts';
import { isAddress } from '#shared/domain/endpoint.ts';
import type { HealthCheck } from '#shared/domain/proxy.ts';
import type { Publication } from '#shared/domain/record.ts';
import type { ProbeResult } from '#shared/domain/verdict-rules.ts';
import type { ProbeOutcome } from '#shared/domain/verdict.ts';
import type { CredentialStore, Credentials } from '#shared/firestore/credentials.ts';

import type { ProbeReply, Prober, Via } from './probe/prober.ts';
import { parseTarget, sameAddress, type Target } from './probe/target.ts';
import { raise } from './signals.ts';

export interface ProbingParts {
  readonly prober: Prober;
  readonly credentials: Pick<CredentialStore, 'read'>;
  /** What every publication is probed with: the echo, then what stands in for it where it refuses. */
  readonly targets: readonly Target[];
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

export interface Probing {
  /**
   * One probe now, of the first of `targets` that does not refuse by itself; `at` is when it begins, in the milliseconds of
   * whoever judges it. Never throws.
   */
  probe(
    publication: Publication,
    check: HealthCheck,
    at: number,
    targets?: readonly Target[],
  ): Promise<ProbeResult>;
  /** The targets that can be reached without a proxy; none = the prober is blind, and an alert was raised. */
  seen(): Promise<readonly Target[]>;
  /** Forgets credentials of endpoints that are no longer published. */
  retain(endpointIds: ReadonlySet<string>): void;
  /** Milliseconds of each successful probe since the last call. */
  takeTimes(): readonly number[];
}

const CONTROL_BUDGET_MS = 5000;
const CONTROL_TRIES = 2;
/** With less time than this a second target is not worth asking. */
const LEAST_MS = 100;

/** What may be the target's doing as well as the proxy's. */
const PERHAPS_TARGET: ReadonlySet<ProbeOutcome> = new Set([
  'TargetUnreachable',
  'TargetRefused',
  'ConnectionLost',
]);

/** Another machine that answers on a recycled address is not a healthy proxy. */
const withOwnExit = ({ endpoint, ownExit }: Publication, reply: ProbeReply): ProbeReply => {
  if (!ownExit || reply.outcome !== 'Ok' || !isAddress(endpoint.host)) return reply;
  // Whoever answered, it was not shown to be this machine, nor to be another.
  if (reply.exitAddress === undefined)
    return { outcome: 'NotProbed', detail: 'no target told the exit address' };
  return sameAddress(endpoint.host, reply.exitAddress) ? reply : { ...reply, outcome: 'WrongExitAddress' };
};

const pagesOf = ({ url }: HealthCheck): readonly Target[] | undefined => {
  if (url === '') return [];
  const page = parseTarget(url, 'page');
  return page ? [page] : undefined;
};

/** Probes with the first target, and within the same budget with the next one, where that may tell the two apart. */
const probeThrough = async (
  { prober, clock }: ProbingParts,
  via: Via,
  targets: readonly Target[],
  pages: readonly Target[],
  budgetMs: number,
): Promise<ProbeReply> => {
  const began = clock.monotonic();
  let reply: ProbeReply = { outcome: 'NotProbed', detail: 'there is no target' };
  for (const target of targets) {
    const left = budgetMs - (clock.monotonic() - began);
    if (left < LEAST_MS && target !== targets[0]) return reply;
    const next = await prober.probe(via, [target, ...pages], left);
    if (target === targets[0] || next.outcome === 'Ok') reply = next;
    if (next.failed !== target || !PERHAPS_TARGET.has(next.outcome)) return reply;
  }
  return reply;
};

const isSeen = async ({ prober, log }: ProbingParts, target: Target): Promise<boolean> => {
  for (let tries = 1; ; tries += 1) {
    const { outcome, detail } = await prober.probe(undefined, [target], CONTROL_BUDGET_MS);
    if (outcome === 'Ok') return true;
    log.warning('control probe failed', { outcome, detail, target: target.authority });
    if (tries === CONTROL_TRIES) return false;
  }
};

const makeCredentials = (store: Pick<CredentialStore, 'read'>) => {
  // What an endpoint has is immutable, so what was read once stays true.
  const known = new Map<string, Credentials | undefined>();
  return {
    async of({ endpoint }: Publication): Promise<Credentials | undefined> {
      if (endpoint.credentialsVersion === '') return undefined;
      const before = known.get(endpoint.id);
      if (before) return before;
      const read = await store.read(endpoint.id);
      if (read) known.set(endpoint.id, read);
      return read;
    },
    retain(endpointIds: ReadonlySet<string>): void {
      for (const id of known.keys()) if (!endpointIds.has(id)) known.delete(id);
    },
  };
};

export const makeProbing = (parts: ProbingParts): Probing => {
  const { targets: all, clock, log } = parts;
  const credentials = makeCredentials(parts.credentials);
  let times: number[] = [];

  const attempt = async (
    publication: Publication,
    check: HealthCheck,
    targets: readonly Target[],
  ): Promise<ProbeReply> => {
    const pages = pagesOf(check);
    if (!pages) return { outcome: 'NotProbed', detail: 'healthCheck.url is no URL' };
    const found = await credentials.of(publication);
    const via = { endpoint: publication.endpoint, ...(found ? { credentials: found } : {}) };
    const began = clock.monotonic();
    const reply = await probeThrough(parts, via, targets, pages, check.timeoutSeconds * 1000);
    if (reply.outcome === 'Ok') times.push(clock.monotonic() - began);
    return withOwnExit(publication, reply);
  };

  return {
    async probe(publication, check, at, targets = all) {
      const endpointId = publication.endpoint.id;
      try {
        const { outcome, exitAddress, detail } = await attempt(publication, check, targets);
        if (outcome !== 'Ok') log.debug('probe failed', { endpointId, outcome, detail });
        return { endpointId, at, outcome, ...(exitAddress === undefined ? {} : { exitAddress }) };
      } catch (error) {
        log.error('probe not possible', error, { endpointId });
        return { endpointId, at, outcome: 'NotProbed' };
      }
    },

    async seen() {
      const results = await Promise.all(all.map((target) => isSeen(parts, target)));
      const seen = all.filter((_, index) => results[index]);
      const lost = all.filter((target) => !seen.includes(target)).map(({ authority }) => authority);
      if (seen.length === 0) raise(parts, 'ProberBlind', 'no probe target is reached directly', { lost });
      else if (lost.length > 0)
        raise(parts, 'TargetLost', 'a probe target is not reached directly', { lost });
      return seen;
    },

    retain: (endpointIds) => credentials.retain(endpointIds),

    takeTimes() {
      const taken = times;
      times = [];
      return taken;
    },
  };
};
