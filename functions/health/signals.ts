/** What operators watch: the closed lists of alerts (field `alert` of a log line, and a count by name) and of counters. */

import type { Fields, Log } from '#shared/app/log.ts';
import type { Metrics } from '#shared/app/metrics.ts';

export const ALERTS = [
  /** No probe target can be reached without a proxy: nothing is judged. */
  'ProberBlind',
  /** One probe target of several cannot be reached without a proxy: the others are used. */
  'TargetLost',
  /** Over half of a shard turned bad at once: not believed yet. */
  'MassFailure',
  /** The round before began longer ago than it should have. */
  'RoundsMissed',
  /** A round did not end in its time. */
  'RoundCutOff',
  /** Calls of Firestore hang in a row: the instance ends, so that another takes its place. */
  'FirestoreStuck',
] as const;
export type Alert = (typeof ALERTS)[number];

/** Names of all counters of health, and the label that tells their values apart. */
export const METRICS = {
  alerts: 'health_alerts',
  /** By `result`: one per shard and round; when it stays away, no rounds come. */
  rounds: 'health_rounds',
  /** By `outcome`. */
  probes: 'health_probes',
  /** By `to` and `outcome`. */
  verdicts: 'health_verdicts',
  /** Endpoints that were due, but for which there was no time. */
  left: 'health_endpoints_left',
  /** Verdicts that could not be written; the next round finds them again. */
  unwritten: 'health_verdicts_unwritten',
  unreadable: 'health_unreadable_records',
  undecodable: 'undecodable_messages',
  /** From publish to the start of handling. */
  messageAge: 'health_message_age_ms',
  /** Of successful probes. */
  probeTimes: 'health_probe_ms',
} as const;

/** One warning and one count; an alert that nobody handles repeats with its cause. */
export const raise = (
  { log, metrics }: { readonly log: Log; readonly metrics: Metrics },
  alert: Alert,
  message: string,
  fields: Fields = {},
): void => {
  log.warning(message, { alert, ...fields });
  metrics.count(METRICS.alerts, { alert });
};
