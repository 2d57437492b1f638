/** What a person can do about it: every text that says what is wrong ends with one of these. */

import type { Verdict, ProbeOutcome } from '#shared/domain/verdict.ts';

import type { Refusal } from './plan.ts';

type Behaviour = Refusal['behaviour'];

/** A provider's words as a sentence that another can follow. */
export const sentence = (words: string): string => (/[.!?…]\s*$/u.test(words) ? words : `${words}.`);

/** A create or start call was refused. */
export const CREATE_REMEDY: Readonly<Record<Behaviour, string>> = {
  QuotaExceeded: 'It is tried again by itself; raise the quota, or delete what is not needed.',
  CapacityUnavailable: 'It is tried again by itself; more zones in gcp.zones help.',
  InvalidSpec:
    'Correct the spec, or the rule that refuses it; unchanged, it is tried again every ten minutes.',
  Conflict: 'It is tried again by itself.',
  Transient: 'It is tried again by itself.',
  Unauthorised: 'An operator has to give provision the right to do this; it is tried again by itself.',
};

const AGAIN = 'it is tried again every five minutes';

/** A delete call was refused. */
export const DELETE_REMEDY: Readonly<Record<Behaviour, string>> = {
  QuotaExceeded: `Nothing needs to be done unless it lasts: ${AGAIN}.`,
  CapacityUnavailable: `Nothing needs to be done unless it lasts: ${AGAIN}.`,
  InvalidSpec: `Take away what the provider names as the reason, such as deletion protection; ${AGAIN}.`,
  Conflict: `Nothing needs to be done unless it lasts: ${AGAIN}.`,
  Transient: `Nothing needs to be done unless it lasts: ${AGAIN}.`,
  Unauthorised: `An operator has to give provision the right to do this; ${AGAIN}.`,
};

/** The provider cannot be asked about a machine, and will not be by itself. */
export const UNSEEN_REMEDY =
  'Nothing is made or deleted until it can be seen. An operator has to look at the rights and the configuration of provision.';

const LISTENS = 'See whether the proxy listens on spec.port and the firewall lets health in.';
const WAY_OUT = "See whether the machine has a way out (NAT, routes) and the proxy's rules allow the target.";

const PROBE_REMEDY: Readonly<Record<ProbeOutcome, string>> = {
  Ok: 'It is probed again by itself.',
  ConnectRefused: LISTENS,
  ConnectTimeout: LISTENS,
  ConnectFailed: LISTENS,
  ConnectionLost: "See the proxy's own log on the machine.",
  Timeout: `It took longer than healthCheck.timeoutSeconds. ${WAY_OUT}`,
  ProxyAuthFailed:
    'The proxy does not take these credentials: see whether it reads them, and whether credentialsSecretRef has the right ones.',
  ProxyError: "See the proxy's own log on the machine.",
  TargetUnreachable: WAY_OUT,
  TargetRefused:
    'The target refuses requests through this proxy: see healthCheck.url, or change spec.revision for another address.',
  WrongContent: 'Something else answered than the target: see what stands between the proxy and it.',
  WrongExitAddress:
    'Requests leave by another address than the machine has: see whether the proxy chains to another one, or change spec.revision.',
  TlsInvalid:
    'The certificate is not the target’s, or the clock of the machine is wrong: something may be intercepting.',
  NotProbed: 'It is probed again by itself.',
};

/** Why an endpoint is not healthy, and what can be done. */
export const probeFailure = ({ outcome }: Pick<Verdict, 'outcome'>): string =>
  outcome === undefined ? `no outcome was recorded. ${LISTENS}` : `${outcome}. ${PROBE_REMEDY[outcome]}`;
