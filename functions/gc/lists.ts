/** What the lists of one run do not show, and which machines they do. */

import type { Coverage } from '#shared/domain/machine.ts';

import type { Identity, Observation } from './observation.ts';

type PerKind = Readonly<Record<Identity['kind'], ReadonlySet<string>>>;

export interface Lists {
  /** Providers whose lists are not complete, or could not be had. */
  readonly incomplete: PerKind;
  /** Keys of zones that could not be seen. */
  readonly unknownZones: PerKind;
  /** Of every listed machine the key of its zone, `/`, and its name. */
  readonly machines: ReadonlySet<string>;
}

export const zoneKey = (provider: string, zone: string): string => `${provider}/${zone}`;

/** `coverage` is absent for a list that could not be had. */
interface Covered {
  readonly provider: string;
  readonly coverage?: Coverage;
}

const incompleteIn = (lists: readonly Covered[]): ReadonlySet<string> =>
  new Set(lists.filter(({ coverage }) => coverage?.partial ?? true).map(({ provider }) => provider));

const unknownIn = (lists: readonly Covered[]): ReadonlySet<string> =>
  new Set(
    lists.flatMap(({ provider, coverage }) =>
      (coverage?.unknownZones ?? []).map((zone) => zoneKey(provider, zone)),
    ),
  );

/** A leftover is judged by both lists: one of its machine's name must have been seen if it is there. */
export const listsOf = ({ listings, leftovers = [] }: Observation): Lists => {
  const ofMachines = listings.map((listing): Covered => {
    const { provider } = listing;
    return listing.kind === 'unknown' ? { provider } : { provider, coverage: listing.fleet };
  });
  const ofLeftovers = leftovers.map((listing): Covered => {
    const { provider } = listing;
    return listing.kind === 'unknown' ? { provider } : { provider, coverage: listing };
  });
  const both = [...ofMachines, ...ofLeftovers];
  return {
    incomplete: { machine: incompleteIn(ofMachines), leftover: incompleteIn(both) },
    unknownZones: { machine: unknownIn(ofMachines), leftover: unknownIn(both) },
    machines: new Set(
      listings.flatMap((listing) =>
        listing.kind === 'unknown' || leftovers.length === 0
          ? []
          : listing.fleet.machines.map(({ zone, name }) => `${zoneKey(listing.provider, zone)}/${name}`),
      ),
    ),
  };
};

const doubtsOf = (
  provider: string,
  what: string,
  list: Coverage | { readonly message: string },
): readonly string[] => {
  if ('message' in list) return [`${what} could not be listed: ${list.message}`];
  const zones = list.unknownZones.map((zone) => `zone ${zone} of ${provider} could not be seen`);
  return list.partial ? [`the list of ${what} is not complete`, ...zones] : zones;
};

/** In words, what the lists do not show. */
export const listDoubts = ({ listings, leftovers = [] }: Observation): readonly string[] => {
  const doubts = [
    ...listings.flatMap((list) =>
      doubtsOf(list.provider, `machines of ${list.provider}`, list.kind === 'listed' ? list.fleet : list),
    ),
    ...leftovers.flatMap((list) =>
      doubtsOf(list.provider, `what machines of ${list.provider} left behind`, list),
    ),
  ];
  // An outage of a zone is in both lists.
  return [...new Set(doubts)];
};

/** Every list is there and shows everything. */
export const areComplete = (observation: Observation): boolean => listDoubts(observation).length === 0;
