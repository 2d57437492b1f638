/** Machines and credentials that carry the UID of a Proxy, and that its record does not know: it was lost, or is an old one. */

import type { Machine } from '#shared/domain/machine.ts';
import { machineName } from '#shared/domain/names.ts';
import type { MachineIntent, ProxyRecord } from '#shared/domain/record.ts';

import type { Observation, Outcome } from './plan.ts';
import { synced } from './publishing.ts';

/** The intent that made a machine; undefined for one whose name is none that we give. */
const intentOf = ({ name, zone, hash, instanceId }: Machine, { installation, ref }: Observation) => {
  const incarnation = Number(name.split('-').at(-1));
  if (hash === undefined || name !== machineName(installation, ref.uid, hash, incarnation)) return undefined;
  return { name, hash, incarnation, zones: [zone], instanceId } satisfies MachineIntent;
};

/** A late success makes two machines of one name: one intent, looked for in all of their zones. */
const alsoIn = (intent: MachineIntent, others: readonly MachineIntent[]): MachineIntent => ({
  ...intent,
  zones: [...new Set([intent, ...others].flatMap(({ zones }) => zones))],
});

const placesIn = ({ machines }: ProxyRecord): number => machines.flatMap(({ zones }) => zones).length;

/** Before those that the record names, since what it has made last counts as the newest. */
const recalled = (record: ProxyRecord, observation: Observation): ProxyRecord => {
  const { machines = [], credentials = [] } = observation.forgotten ?? {};
  const found = machines
    .map((machine) => intentOf(machine, observation))
    .filter((intent) => intent !== undefined);
  const names = new Set(record.machines.map(({ name }) => name));
  const intents = [...Map.groupBy(found, ({ name }) => name).values()]
    .flatMap(([one, ...twins]) => (one && !names.has(one.name) ? [alsoIn(one, twins)] : []))
    .toSorted((a, b) => a.incarnation - b.incarnation);
  const recorded = record.machines.map((intent) =>
    alsoIn(
      intent,
      found.filter(({ name }) => name === intent.name),
    ),
  );
  const known = record.credentials ?? [];
  const ids = credentials.filter((id) => !known.includes(id));
  return {
    ...record,
    machines: [...intents, ...recorded],
    incarnation: Math.max(record.incarnation, ...intents.map(({ incarnation }) => incarnation)),
    ...(ids.length > 0 ? { credentials: [...known, ...ids] } : {}),
  };
};

/** They are recorded; whatever is not wanted among them goes the way of everything that is not wanted. */
export const somethingIsForgotten = (observation: Observation): Outcome | undefined => {
  const { proxy, record } = observation;
  if (!proxy || record?.gone) return undefined;
  const base = synced(observation, proxy);
  const next = recalled(base, observation);
  const isNews = placesIn(next) > placesIn(base) || next.credentials?.length !== base.credentials?.length;
  return isNews ? { because: 'somethingIsForgotten', record: next, next: { again: true } } : undefined;
};
