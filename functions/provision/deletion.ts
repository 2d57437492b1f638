/** The end of a Proxy: close the gate, let leases run out, delete its machines, see them gone, let the Proxy go. */

import type { Finding } from '#shared/domain/conditions.ts';
import type { ProxyRecord } from '#shared/domain/record.ts';

import { noted } from './machines.ts';
import type { Observation, Outcome, ProxyFacts, Refusal, Step } from './plan.ts';
import {
  drainServing,
  synced,
  tombstone,
  withoutCandidate,
  withoutDead,
  withoutPlace,
} from './publishing.ts';
import { DELETE_REMEDY, sentence } from './remedies.ts';
import { withoutTaken } from './rivals.ts';
import { tidy, type Tidied } from './tidy.ts';

/** While a provider cannot be asked, this long between two tries. */
const BLOCKED_MS = 300_000;

const dropCredentials = (credentials: readonly string[] = []): readonly Step[] =>
  credentials.length > 0 ? [{ kind: 'removeCredentials', endpointIds: credentials }] : [];

const dropAllCredentials = ({ credentials }: ProxyRecord): readonly Step[] => dropCredentials(credentials);

/** What a lost record leaves behind: the gate may be open, and nobody else knows of either. */
const dropForgotten = (forgotten: Observation['forgotten']): readonly Step[] => [
  ...(forgotten?.leases ? [{ kind: 'removeLeases' as const }] : []),
  ...dropCredentials(forgotten?.credentials),
];

/**
 * The Proxy is not there any more: nothing may be leased from now on. Its machines are left to gc. What another cluster than
 * the installation's own does not have may well be alive in that one.
 */
export const proxyIsGone = (observation: Observation): Outcome | undefined => {
  const { proxy, record, forgotten, elsewhere } = observation;
  if (proxy) return undefined;
  if (elsewhere) return { because: 'anotherClusterAnswers', next: {} };
  if (!record || record.gone) return { because: 'proxyIsGone', after: dropForgotten(forgotten), next: {} };
  return {
    because: 'proxyIsGone',
    record: tombstone(record),
    after: dropAllCredentials(record),
    next: {},
  };
};

/** Somebody took our finalizer from a Proxy that is being deleted: it is as good as gone, and never gets it back. */
export const finalizerWasRemoved = (observation: Observation): Outcome | undefined => {
  const { proxy, record } = observation;
  if (!proxy?.deleting || proxy.hasFinalizer) return undefined;
  if (!record || record.gone)
    return { because: 'finalizerWasRemoved', after: dropForgotten(observation.forgotten), next: {} };
  return {
    because: 'finalizerWasRemoved',
    record: tombstone({ ...record, deleting: true }),
    after: dropAllCredentials(record),
    next: {},
  };
};

const REFUSAL_REASON = {
  QuotaExceeded: 'QuotaExceeded',
  CapacityUnavailable: 'CapacityUnavailable',
  Conflict: 'ProviderError',
  InvalidSpec: 'ProviderError',
  Transient: 'ProviderError',
  Unauthorised: 'ProviderError',
} as const satisfies Record<Refusal['behaviour'], Finding<'Provisioned'>['reason']>;

/** Why the deletion is not done yet; undefined when nothing is left of it. */
const pendingReason = (
  observation: Observation,
  record: ProxyRecord,
  { leaving }: Tidied,
): Finding<'Provisioned'> | undefined => {
  const refusal = observation.refusals.find(({ kind }) => kind === 'delete');
  const names = record.machines.map(({ name }) => name).join(', ');
  const { fleet } = observation;
  if (record.machines.length > 0 && fleet.kind === 'notConfigured')
    return {
      status: 'False',
      reason: 'ProviderNotConfigured',
      message: `Deleting: provider ${record.provider} is not configured here, so ${names} cannot be deleted. An operator has to add it to PROVIDERS again; the rest happens by itself.`,
    };
  if (record.machines.length > 0 && fleet.kind === 'seen' && fleet.trouble)
    return {
      status: 'False',
      reason: 'ProviderError',
      message: `Deleting ${names}: ${fleet.trouble.message}`,
    };
  if (refusal)
    return {
      status: 'False',
      reason: REFUSAL_REASON[refusal.behaviour],
      message: `Deleting ${refusal.machine}: ${refusal.code}: ${sentence(refusal.message)} ${DELETE_REMEDY[refusal.behaviour]}`,
    };
  if (leaving.length > 0)
    return { status: 'False', reason: 'Deleting', message: `Waiting until ${leaving.join(', ')} is gone.` };
  if (record.draining.length > 0)
    return {
      status: 'False',
      reason: 'Draining',
      message: `Deletion waits for running leases, for ${record.drainTimeoutSeconds} s at most. Leases that are given back end it sooner.`,
    };
  return undefined;
};

/** One chain of passes from the deletion mark to the finalizer's removal. */
const wasProvisioned = (
  observation: Observation,
  facts: ProxyFacts,
  stored: ProxyRecord,
  now: number,
): Outcome => {
  const start = noted(withoutPlace(synced(observation, facts)), observation, now);
  const leaving = withoutTaken(withoutCandidate(drainServing(start, now)), observation);
  const withdrawn = withoutDead(leaving, observation);
  if (stored.serving || stored.candidate || !stored.deleting)
    return { because: 'deletionBegins', record: withdrawn, next: { again: true } };

  const tidied = tidy(withdrawn, observation, now, () => false);
  const { record, steps } = tidied;
  const provisioned = pendingReason(observation, record, tidied);
  if (!provisioned)
    return {
      because: 'nothingIsLeft',
      record: tombstone(record),
      // Credentials are among the steps: without an endpoint none is needed any more.
      after: [...steps, { kind: 'removeFinalizer' }],
      next: {},
    };
  const { fleet } = observation;
  const retry = record.machines.length > 0 && fleet.kind === 'seen' && fleet.trouble?.transient;
  return {
    because: 'deletionGoesOn',
    record,
    after: steps,
    provisioned,
    wake: tidied.wake ?? { at: now + BLOCKED_MS, reason: provisioned.reason },
    next: retry && !tidied.next.again ? { retry } : tidied.next,
  };
};

/** Deletion wins over everything: no state of the spec, of Secrets or of the provider's configuration delays it. */
export const isBeingDeleted = (observation: Observation, now: number): Outcome | undefined => {
  const { proxy, record } = observation;
  if (!proxy?.deleting) return undefined;
  if (!record || record.gone)
    return {
      because: 'nothingWasMade',
      after: [...dropForgotten(observation.forgotten), { kind: 'removeFinalizer' }],
      next: {},
    };
  return wasProvisioned(observation, proxy, record, now);
};
