/** Conditions of a Proxy: three facts and one call for a person. One closed list of reasons per type. */

export const CONDITION_REASONS = {
  Provisioned: [
    'Provisioned',
    'External',
    'Creating',
    'WaitingForAddress',
    'Replacing',
    'ReplacementQueued',
    'Restarting',
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
    'Draining',
    'Deleting',
    'OtherInstallation',
  ],
  Healthy: ['ProbeSucceeded', 'ProbeFailed', 'NotProbedYet', 'NoEndpoint'],
  Ready: [
    'Ready',
    'NotProvisioned',
    'NotHealthy',
    'Replacing',
    'ReplacementQueued',
    'ReplacementBlocked',
    'Cordoned',
    'Deleting',
  ],
  Stalled: ['NeedsAttention', 'Progressing'],
} as const;

export type ConditionType = keyof typeof CONDITION_REASONS;
export type Reason<T extends ConditionType> = (typeof CONDITION_REASONS)[T][number];

/** As metav1.Condition; `lastTransitionTime` is RFC 3339 in seconds. */
export interface Condition {
  readonly type: ConditionType;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration: number;
  readonly lastTransitionTime: string;
}

/** A judgement, before it is known whether it is news. */
export interface Finding<T extends ConditionType> {
  readonly status: Condition['status'];
  readonly reason: Reason<T>;
  readonly message: string;
}

const rfc3339 = (ms: number): string => new Date(ms).toISOString().replace(/\.\d{3}Z$/, 'Z');

/** What the schema takes; a provider may say more. In code points. */
const MAX_MESSAGE = 32_768;

/** The text, cut where it is longer than `max` code points. */
export const bounded = (text: string, max = MAX_MESSAGE): string => {
  if (text.length <= max) return text;
  const points = Array.from(text);
  return points.length <= max ? text : `${points.slice(0, max - 1).join('')}…`;
};

/** The list with one condition of this type set; its transition time moves only when the status does. */
export const setCondition = <T extends ConditionType>(
  conditions: readonly Condition[],
  type: T,
  finding: Finding<T>,
  generation: number,
  now: number,
): readonly Condition[] => {
  const previous = conditions.find((condition) => condition.type === type);
  const next: Condition = {
    type,
    ...finding,
    message: bounded(finding.message),
    observedGeneration: generation,
    lastTransitionTime: previous?.status === finding.status ? previous.lastTransitionTime : rfc3339(now),
  };
  return previous
    ? conditions.map((condition) => (condition === previous ? next : condition))
    : [...conditions, next];
};
