/** What health knows of one endpoint. */

export type VerdictState = 'Unknown' | 'Healthy' | 'Unhealthy';

/** Outcome of one probe: the closed list that conditions, logs and metrics share. */
export const PROBE_OUTCOMES = [
  'Ok',
  'ConnectRefused',
  'ConnectTimeout',
  'ConnectFailed',
  'ProxyAuthFailed',
  'ProxyError',
  'TargetUnreachable',
  'TargetRefused',
  'WrongContent',
  'WrongExitAddress',
  'TlsInvalid',
  'ConnectionLost',
  'Timeout',
  /** The prober's own trouble (no descriptors, credentials out of reach): counts neither way. */
  'NotProbed',
] as const;
export type ProbeOutcome = (typeof PROBE_OUTCOMES)[number];

/** Stored only when it changes. `since` and `checkedAt` are milliseconds; `checkedAt` is the probe that settled the state. */
export interface Verdict {
  readonly state: VerdictState;
  readonly since: number;
  readonly checkedAt: number;
  readonly outcome?: ProbeOutcome;
  /** The address that the probe's target saw. */
  readonly exitAddress?: string;
}

export const unknownVerdict = (now: number): Verdict => ({ state: 'Unknown', since: now, checkedAt: now });
