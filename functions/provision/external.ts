/** External proxies: their endpoint is given, so publishing it is all there is to do. */

import { isReserved } from '#shared/domain/address.ts';
import type { Finding } from '#shared/domain/conditions.ts';
import { samePlace, type Endpoint } from '#shared/domain/endpoint.ts';
import type { ProxyRecord } from '#shared/domain/record.ts';

import { publish, unsettledVerdict } from './publish.ts';
import type { Observation, Outcome, ProxyFacts } from './plan.ts';
import { synced, withoutCandidate, withoutServing } from './publishing.ts';
import { tidy } from './tidy.ts';

const BLOCKED_MS = 300_000;

interface Scene {
  readonly observation: Observation;
  readonly facts: ProxyFacts;
  readonly record: ProxyRecord;
  readonly given: { readonly host: string; readonly port: number; readonly scheme: Endpoint['scheme'] };
  readonly now: number;
}
type Check = (scene: Scene) => Outcome | undefined;

const isElsewhere = ({ record, given }: Scene): boolean =>
  record.serving !== undefined &&
  (record.serving.endpoint.host !== given.host ||
    record.serving.endpoint.port !== given.port ||
    record.serving.endpoint.scheme !== given.scheme);

/** An address inside somebody's own network, which the operator has not allowed. */
const endpointIsRefused: Check = ({ observation, record, given, now }) =>
  observation.allowPrivateEndpoints || !isReserved(given.host)
    ? undefined
    : {
        because: 'endpointIsRefused',
        record: withoutServing(record),
        provisioned: {
          status: 'False',
          reason: 'EndpointRefused',
          message: `${given.host} is a loopback, link-local, private or otherwise reserved address. Give one that is public, or have the operator allow such endpoints (ALLOW_PRIVATE_ENDPOINTS).`,
        },
        stalled: true,
        wake: { at: now + BLOCKED_MS, reason: 'EndpointRefused' },
        next: {},
      };

/** The Secret cannot be used. What is published goes on serving, unless the endpoint was edited away meanwhile. */
const credentialsAreUnusable: Check = (scene) => {
  const { observation, record, now } = scene;
  const { inputs } = observation;
  if (inputs?.kind !== 'trouble') return undefined;
  return {
    because: 'credentialsAreUnusable',
    record: isElsewhere(scene) ? withoutServing(record) : record,
    provisioned: { status: 'False', reason: inputs.reason, message: inputs.message },
    stalled: inputs.judged,
    judged: inputs.judged,
    wake: { at: now + BLOCKED_MS, reason: inputs.reason },
    next: {},
  };
};

const asGiven = ({ host, port }: Scene['given']): Finding<'Provisioned'> => ({
  status: 'True',
  reason: 'External',
  message: `The endpoint is ${host} port ${port}, as given.`,
});

/** A new endpoint takes the place of the old one in one write: nobody knows yet whether it answers. */
const endpointIsNew: Check = ({ observation, record, given, now }) => {
  if (observation.inputs?.kind !== 'resolved') return undefined;
  const { credentialsVersion } = observation.inputs;
  const endpoint = { ...given, id: observation.freshId, instanceId: '', credentialsVersion };
  if (record.serving && samePlace(record.serving.endpoint, endpoint)) return undefined;
  return publish(record, { endpoint, as: 'serving', provisioned: asGiven(given), now });
};

const settled: Check = ({ observation, record, given, now }) => {
  const tidied = tidy(record, observation, now, () => false);
  const waiting = unsettledVerdict(record.serving, now);
  return {
    because: 'settled',
    record: tidied.record,
    after: [...tidied.steps, ...waiting.steps],
    provisioned: asGiven(given),
    ...(waiting.wake ? { wake: waiting.wake } : {}),
    next: tidied.next,
  };
};

const CHECKS: readonly Check[] = [endpointIsRefused, credentialsAreUnusable, endpointIsNew, settled];

export const isExternal = (observation: Observation, now: number): Outcome | undefined => {
  const { proxy } = observation;
  const given = proxy?.desired.endpoint;
  if (!proxy || !given) return undefined;
  const record = withoutCandidate(synced(observation, proxy));
  const scene: Scene = { observation, facts: proxy, record, given, now };
  for (const check of CHECKS) {
    const outcome = check(scene);
    if (outcome) return outcome;
  }
  return undefined;
};
