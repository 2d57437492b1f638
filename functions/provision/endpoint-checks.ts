/** Checks of what is published: withdrawn when its machine does not answer, switched when its successor is healthy. */

import type { Check, Scene } from './machine-scene.ts';
import { isReplacing } from './machine-scene.ts';
import { promoteCandidate, withoutCandidate, withoutDead } from './publishing.ts';

const BLOCKED_MS = 300_000;

export const providerIsNotConfigured: Check<Scene> = ({ observation, facts, record, now }) =>
  observation.fleet.kind === 'notConfigured'
    ? {
        because: 'providerIsNotConfigured',
        record,
        provisioned: {
          status: 'False',
          reason: 'ProviderNotConfigured',
          message: `Provider ${facts.desired.provider} is not configured in this installation. An operator has to add it to PROVIDERS, or the Proxy has to be deleted.`,
        },
        stalled: true,
        wake: { at: now + BLOCKED_MS, reason: 'ProviderNotConfigured' },
        next: {},
      }
    : undefined;

/** A machine of this Proxy cannot be seen: nothing is made and nothing is deleted until it can. */
export const providerDoesNotAnswer: Check<Scene> = ({ observation, record, now }) => {
  const trouble = observation.fleet.kind === 'seen' ? observation.fleet.trouble : undefined;
  if (!trouble) return undefined;
  const wake = { at: now + BLOCKED_MS, reason: 'ProviderError' };
  if (trouble.transient) return { because: 'providerDoesNotAnswer', record, wake, next: { retry: true } };
  return {
    because: 'providerDoesNotAnswer',
    record,
    provisioned: { status: 'False', reason: 'ProviderError', message: trouble.message },
    stalled: true,
    wake,
    next: {},
  };
};

/** Stopped, gone, or elsewhere: its endpoint is withdrawn before anything else happens. */
export const machineDoesNotAnswerThere: Check<Scene> = ({ observation, record }) => {
  const live = withoutDead(record, observation);
  return live === record
    ? undefined
    : { because: 'machineDoesNotAnswerThere', record: live, next: { again: true } };
};

/** Nothing serves: the candidate takes the place at once, its gate closed until it is healthy. */
export const candidateIsAlone: Check<Scene> = ({ record, now }) =>
  record.candidate && !record.serving
    ? { because: 'candidateIsAlone', record: promoteCandidate(record, now), next: { again: true } }
    : undefined;

/** What is published goes on serving: it was right when it was made. */
export const inputsAreUnusable: Check<Scene> = ({ observation, record, now }) => {
  const { inputs } = observation;
  if (inputs?.kind !== 'trouble') return undefined;
  return {
    because: 'inputsAreUnusable',
    record,
    provisioned: { status: 'False', reason: inputs.reason, message: inputs.message },
    stalled: inputs.judged,
    judged: inputs.judged,
    blocked: record.serving !== undefined,
    wake: { at: now + BLOCKED_MS, reason: inputs.reason },
    next: {},
  };
};

/** The spec has moved on, or back: no lease runs on a candidate, so it simply goes. */
export const candidateIsNotWanted: Check<Scene> = ({ record, wanted }) =>
  record.candidate && record.candidate.machine !== wanted?.name
    ? { because: 'candidateIsNotWanted', record: withoutCandidate(record), next: { again: true } }
    : undefined;

export const candidateIsHealthy: Check<Scene> = (scene) => {
  const { record, now } = scene;
  return isReplacing(scene) && record.candidate?.verdict.state === 'Healthy'
    ? { because: 'candidateIsHealthy', record: promoteCandidate(record, now), next: { again: true } }
    : undefined;
};
