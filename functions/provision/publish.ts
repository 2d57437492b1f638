/** Publication of an endpoint, credentials first; and what follows as long as nobody knows whether it answers. */

import type { Finding } from '#shared/domain/conditions.ts';
import type { Endpoint } from '#shared/domain/endpoint.ts';
import type { ProxyRecord, Publication } from '#shared/domain/record.ts';

import type { Outcome, Step } from './plan.ts';
import { publicationOf } from './publishing.ts';

/** Probing begins at once and tries for two minutes; later than this somebody asks again. */
const UNJUDGED_MS = 300_000;

export interface NewEndpoint {
  readonly endpoint: Endpoint;
  readonly as: 'serving' | 'candidate';
  readonly machine?: Pick<Publication, 'machine' | 'zone' | 'providerID' | 'ownExit'>;
  readonly provisioned: Finding<'Provisioned'>;
  readonly now: number;
}

/**
 * Where clients must authenticate, the endpoint's id is recorded first, then its credentials are stored, and only then it
 * is published: no probe ever comes without them, and no crash leaves credentials that nobody knows of.
 */
export const publish = (
  record: ProxyRecord,
  { endpoint, as, machine, provisioned, now }: NewEndpoint,
): Outcome => {
  const publication = publicationOf(endpoint, now, machine);
  const wake = { at: now + UNJUDGED_MS, reason: 'NotProbedYet' };
  const outcome = {
    because: 'endpointIsNew',
    provisioned,
    after: [{ kind: 'requestProbe' }],
    wake,
    next: {},
  } as const;
  if (endpoint.credentialsVersion === '') return { ...outcome, record: { ...record, [as]: publication } };
  const announced: ProxyRecord = {
    ...record,
    credentials: [...(record.credentials ?? []), endpoint.id],
    wakeAt: record.wakeAt ?? wake.at,
    wakeReason: record.wakeReason ?? wake.reason,
  };
  return {
    ...outcome,
    before: [
      { kind: 'writeRecord', record: announced },
      { kind: 'storeCredentials', endpointId: endpoint.id },
    ],
    record: { ...announced, [as]: publication },
  };
};

/** An endpoint without a verdict is probed now, and looked at again when no verdict comes. */
export const unsettledVerdict = (
  publication: Publication | undefined,
  now: number,
): { readonly steps: readonly Step[]; readonly wake?: { readonly at: number; readonly reason: string } } =>
  publication?.verdict.state === 'Unknown'
    ? { steps: [{ kind: 'requestProbe' }], wake: { at: now + UNJUDGED_MS, reason: 'NotProbedYet' } }
    : { steps: [] };
