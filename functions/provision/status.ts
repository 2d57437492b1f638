/** The status that a record and a finding amount to, and what of it is worth an Event. */

import {
  setCondition,
  type Condition,
  type ConditionType,
  type Finding,
  type Reason,
} from '#shared/domain/conditions.ts';
import { isAddress } from '#shared/domain/endpoint.ts';
import type { MachineIntent, ProxyRecord, Publication } from '#shared/domain/record.ts';
import type { Verdict, VerdictState } from '#shared/domain/verdict.ts';

import type { Observation, Outcome, ProxyEvent, ProxyFacts, Status } from './plan.ts';
import { probeFailure } from './remedies.ts';

type Judged = Outcome & { readonly provisioned: Finding<'Provisioned'> };

/** Reasons of Provisioned that say that something is wrong, not merely under way. */
const TROUBLE: readonly Reason<'Provisioned'>[] = [
  'CapacityUnavailable',
  'QuotaExceeded',
  'ProviderError',
  'ProviderNotConfigured',
  'InvalidSpec',
  'Conflict',
  'MachineGone',
  'MachineStopped',
  'SecretMissing',
  'SecretNotLabelled',
  'SecretKeyMissing',
  'SecretUnreadable',
  'EndpointRefused',
];
const isTrouble = (reason: string): boolean => TROUBLE.some((each) => each === reason);

const HEALTHY: Readonly<Record<VerdictState, (verdict: Verdict) => Finding<'Healthy'>>> = {
  Healthy: () => ({ status: 'True', reason: 'ProbeSucceeded', message: 'The endpoint answers probes.' }),
  Unhealthy: (verdict) => ({
    status: 'False',
    reason: 'ProbeFailed',
    message: `The endpoint does not answer probes: ${probeFailure(verdict)}`,
  }),
  Unknown: () => ({
    status: 'Unknown',
    reason: 'NotProbedYet',
    message:
      'The endpoint has not been judged yet. It is probed from now on, and has two minutes to come up; should this last longer, an operator has to see whether health runs.',
  }),
};

const healthyFinding = (serving: Publication | undefined): Finding<'Healthy'> =>
  serving
    ? HEALTHY[serving.verdict.state](serving.verdict)
    : {
        status: 'False',
        reason: 'NoEndpoint',
        message: 'There is no usable endpoint: the condition Provisioned says why.',
      };

/** The intent that is to replace the serving machine, once there is one. */
const replacing = ({ serving, machines }: ProxyRecord): MachineIntent | undefined => {
  const current = machines.find(({ name }) => name === serving?.machine);
  return current && machines.findLast(({ incarnation }) => incarnation > current.incarnation);
};

const replacementFinding = (record: ProxyRecord, outcome: Judged): Finding<'Ready'> | undefined => {
  if (outcome.blocked && record.serving)
    return {
      status: 'False',
      reason: 'ReplacementBlocked',
      message: `The endpoint from before serves on. ${outcome.provisioned.message}`,
    };
  const { reason, message } = outcome.provisioned;
  if (reason === 'Replacing' || reason === 'ReplacementQueued') return { status: 'False', reason, message };
  return undefined;
};

const readyFinding = (
  record: ProxyRecord,
  outcome: Judged,
  healthy: Finding<'Healthy'>,
): Finding<'Ready'> => {
  if (record.deleting) return { status: 'False', reason: 'Deleting', message: 'The Proxy is being deleted.' };
  const replacement = replacementFinding(record, outcome);
  if (replacement) return replacement;
  if (outcome.provisioned.status !== 'True')
    return { status: 'False', reason: 'NotProvisioned', message: outcome.provisioned.message };
  if (healthy.status !== 'True') return { status: 'False', reason: 'NotHealthy', message: healthy.message };
  return record.cordoned
    ? { status: 'True', reason: 'Cordoned', message: 'Converged and healthy; new leases are refused.' }
    : { status: 'True', reason: 'Ready', message: 'Converged and healthy.' };
};

const endpointFields = (serving: Publication | undefined): Partial<Status> => {
  if (!serving) return {};
  const { host, port, scheme } = serving.endpoint;
  return {
    host,
    ...(isAddress(host) ? { ip: host } : {}),
    port,
    scheme,
    ...(serving.zone ? { zone: serving.zone } : {}),
    ...(serving.providerID === undefined ? {} : { providerID: serving.providerID }),
    ...(serving.verdict.exitAddress === undefined ? {} : { exitAddress: serving.verdict.exitAddress }),
  };
};

const replacementFields = (record: ProxyRecord): Pick<Status, 'replacement'> => {
  const intent = record.deleting ? undefined : replacing(record);
  if (!intent) return {};
  const { candidate } = record;
  const zone = record.provider === 'gcp' ? (candidate?.zone ?? intent.zones.at(-1)) : undefined;
  return {
    replacement: {
      reason: 'SpecChanged',
      ...(intent.askedAt === undefined
        ? {}
        : { since: new Date(intent.askedAt).toISOString().replace(/\.\d{3}Z$/, 'Z') }),
      ...(zone ? { zone } : {}),
      ...(candidate?.providerID === undefined ? {} : { providerID: candidate.providerID }),
    },
  };
};

/** `observedGeneration` and `observed` move only when this generation's spec has been judged. */
const observedFields = (observation: Observation, facts: ProxyFacts, judged: boolean): Partial<Status> => {
  const { observedGeneration, observed } = facts.status;
  if (!judged)
    return {
      ...(observedGeneration === undefined ? {} : { observedGeneration }),
      ...(observed === undefined ? {} : { observed }),
    };
  const secretVersions = observation.inputs?.secretVersions ?? observed?.secretVersions ?? {};
  return {
    observedGeneration: facts.generation,
    observed: { generation: facts.generation, labelsHash: facts.labelsHash, secretVersions },
  };
};

const conditionsOf = (
  facts: ProxyFacts,
  record: ProxyRecord,
  outcome: Judged,
  now: number,
): readonly Condition[] => {
  const generation = outcome.judged === false ? (facts.status.observedGeneration ?? 0) : facts.generation;
  const healthy = healthyFinding(record.serving);
  const ready = readyFinding(record, outcome, healthy);
  const stalled: Finding<'Stalled'> = outcome.stalled
    ? { status: 'True', reason: 'NeedsAttention', message: outcome.provisioned.message }
    : { status: 'False', reason: 'Progressing', message: 'Nothing waits for a person.' };
  const before = facts.status.conditions ?? [];
  const set = <T extends ConditionType>(list: readonly Condition[], type: T, finding: Finding<T>) =>
    setCondition(list, type, finding, generation, now);
  return set(
    set(set(set(before, 'Provisioned', outcome.provisioned), 'Healthy', healthy), 'Ready', ready),
    'Stalled',
    stalled,
  );
};

export const statusOf = (
  observation: Observation,
  facts: ProxyFacts,
  record: ProxyRecord,
  outcome: Judged,
  now: number,
): Status => ({
  ...observedFields(observation, facts, outcome.judged !== false),
  installation: observation.installation,
  provider: record.provider,
  ...endpointFields(record.serving),
  ...replacementFields(record),
  conditions: conditionsOf(facts, record, outcome, now),
});

const TOLD: ReadonlySet<ConditionType> = new Set(['Provisioned', 'Healthy', 'Ready']);

const isWarning = ({ type, reason }: Condition): boolean =>
  type === 'Provisioned' ? isTrouble(reason) : reason === 'ProbeFailed' || reason === 'ReplacementBlocked';

/** Ready repeats what the other two say, except when it comes true or a replacement is stuck. */
const isNews = (condition: Condition, before: Condition | undefined): boolean => {
  if (!TOLD.has(condition.type) || before?.reason === condition.reason) return false;
  if (condition.type === 'Healthy') return ['ProbeSucceeded', 'ProbeFailed'].includes(condition.reason);
  if (condition.type === 'Ready') return ['Ready', 'ReplacementBlocked'].includes(condition.reason);
  return true;
};

/** One Event for each condition that changed its reason. */
export const eventsOf = (before: Status, after: Status): readonly ProxyEvent[] =>
  (after.conditions ?? [])
    .filter((condition) =>
      isNews(
        condition,
        before.conditions?.find(({ type }) => type === condition.type),
      ),
    )
    .map((condition) => ({
      type: isWarning(condition) ? 'Warning' : 'Normal',
      reason: condition.reason,
      message: condition.message,
    }));
