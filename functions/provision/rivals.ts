/**
 * An address that the provider has given to another machine while an old record still names it. Of two endpoints at one place
 * only the newer can be right, since each was published for a machine that was seen there: the older is withdrawn.
 */

import {
  isNewer,
  publications,
  type ProxyRecord,
  type Publication,
  type PublishedPlace,
} from '#shared/domain/record.ts';

import type { Check, Scene } from './machine-scene.ts';
import type { Observation } from './plan.ts';
import { changeIntent, withoutPublications } from './publishing.ts';

/** The endpoint of another Proxy at this place that was published later than `at` (ms). */
export const rivalAt = (
  { rivals = [], ref }: Observation,
  { host, port }: { readonly host: string; readonly port: number },
  at: number,
): PublishedPlace | undefined =>
  rivals.find(
    (rival) => rival.host === host && rival.port === port && isNewer(rival, { ref, publishedAt: at }),
  );

const takenFrom = (observation: Observation, { machine, endpoint, publishedAt }: Publication) =>
  machine === undefined ? undefined : rivalAt(observation, endpoint, publishedAt);

/** The machine remembers what it gave way to: it is not published there again as if it were the newer one. */
const withYielded = (
  record: ProxyRecord,
  { machine = '', endpoint, publishedAt }: Publication,
): ProxyRecord =>
  changeIntent(record, machine, (intent) => ({
    ...intent,
    yielded: { host: endpoint.host, at: publishedAt },
  }));

/** The record without the endpoints whose place is another Proxy's by now. */
export const withoutTaken = (record: ProxyRecord, observation: Observation): ProxyRecord => {
  const taken = publications(record).filter((each) => takenFrom(observation, each));
  return taken.reduce(withYielded, withoutPublications(record, taken));
};

/** What it says, and what a person can do should it last. */
export const takenMessage = ({ host, port, ref }: PublishedPlace): string =>
  `${host} port ${port} is now the endpoint of Proxy ${ref.namespace}/${ref.name}, published later, and is not used here any more. This Proxy gets another one once its own machine can be seen. If it lasts, both machines have this address, in networks that overlap: change spec.revision for another machine, or spec.gcp.subnetwork.`;

export const addressIsAnothers: Check<Scene> = ({ observation, record }) => {
  const left = withoutTaken(record, observation);
  if (left === record) return undefined;
  const rival = publications(record)
    .map((each) => takenFrom(observation, each))
    .find((found) => found !== undefined);
  const hidden = observation.fleet.kind === 'seen' && observation.fleet.trouble?.transient === true;
  return {
    because: 'addressIsAnothers',
    record: left,
    ...(rival ? { provisioned: { status: 'False', reason: 'Conflict', message: takenMessage(rival) } } : {}),
    // While its machine cannot be seen, nothing more can be done, and what there is to say is said now.
    next: hidden ? { retry: true } : { again: true },
  };
};
