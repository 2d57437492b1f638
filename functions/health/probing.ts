/** One probe of one publication: credentials, targets, and what the answer means. */

import type { Log } from '#shared/app/log.ts';
import { isAddress } from '#shared/domain/endpoint.ts';
import type { HealthCheck } from '#shared/domain/proxy.ts';
import type { Publication } from '#shared/domain/record.ts';
import type { ProbeResult } from '#shared/domain/verdict-rules.ts';
import type { CredentialStore, Credentials } from '#shared/firestore/credentials.ts';

import type { ProbeReply, Prober } from './probe/prober.ts';
import { parseTarget, sameAddress, type Target } from './probe/target.ts';

export interface ProbingParts {
  readonly prober: Prober;
  readonly credentials: Pick<CredentialStore, 'read'>;
  /** The echo that every publication is probed with. */
  readonly target: Target;
  readonly log: Log;
}

export interface Probing {
  /** One probe now; `at` is when it begins, in the milliseconds of whoever judges it. Never throws. */
  probe(publication: Publication, check: HealthCheck, at: number): Promise<ProbeResult>;
  /** The target without a proxy: true when the prober can see at all. */
  control(): Promise<boolean>;
  /** Forgets credentials of endpoints that are no longer published. */
  retain(endpointIds: ReadonlySet<string>): void;
}

const CONTROL_BUDGET_MS = 5000;
const CONTROL_TRIES = 2;

/** Another machine that answers on a recycled address is not a healthy proxy. */
const withOwnExit = ({ endpoint, ownExit }: Publication, reply: ProbeReply): ProbeReply =>
  ownExit &&
  reply.outcome === 'Ok' &&
  isAddress(endpoint.host) &&
  !sameAddress(endpoint.host, reply.exitAddress ?? '')
    ? { ...reply, outcome: 'WrongExitAddress' }
    : reply;

const targetsOf = (target: Target, { url }: HealthCheck): readonly Target[] | undefined => {
  if (url === '') return [target];
  const page = parseTarget(url, 'page');
  return page ? [target, page] : undefined;
};

export const makeProbing = ({ prober, credentials, target, log }: ProbingParts): Probing => {
  // What an endpoint has is immutable, so what was read once stays true.
  const known = new Map<string, Credentials | undefined>();

  const credentialsOf = async ({ endpoint }: Publication): Promise<Credentials | undefined> => {
    if (endpoint.credentialsVersion === '') return undefined;
    const before = known.get(endpoint.id);
    if (before) return before;
    const read = await credentials.read(endpoint.id);
    if (read) known.set(endpoint.id, read);
    return read;
  };

  const attempt = async (publication: Publication, check: HealthCheck): Promise<ProbeReply> => {
    const targets = targetsOf(target, check);
    if (!targets) return { outcome: 'NotProbed', detail: 'healthCheck.url is no URL' };
    const found = await credentialsOf(publication);
    const via = { endpoint: publication.endpoint, ...(found ? { credentials: found } : {}) };
    return withOwnExit(publication, await prober.probe(via, targets, check.timeoutSeconds * 1000));
  };

  return {
    async probe(publication, check, at) {
      const endpointId = publication.endpoint.id;
      try {
        const { outcome, exitAddress, detail } = await attempt(publication, check);
        if (outcome !== 'Ok') log.debug('probe failed', { endpointId, outcome, detail });
        return { endpointId, at, outcome, ...(exitAddress === undefined ? {} : { exitAddress }) };
      } catch (error) {
        log.error('probe not possible', error, { endpointId });
        return { endpointId, at, outcome: 'NotProbed' };
      }
    },

    async control() {
      for (let tries = 1; ; tries += 1) {
        const { outcome, detail } = await prober.probe(undefined, [target], CONTROL_BUDGET_MS);
        if (outcome === 'Ok') return true;
        log.warning('control probe failed', { outcome, detail, target: target.authority });
        if (tries === CONTROL_TRIES) return false;
      }
    },

    retain(endpointIds) {
      for (const id of known.keys()) if (!endpointIds.has(id)) known.delete(id);
    },
  };
};
