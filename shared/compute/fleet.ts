/** Lists over all zones: every page, and what could not be seen. */

import { z } from 'zod';

import { SystemError } from '#shared/app/errors.ts';
import type { Coverage, FleetListing, LeftoverListing, Machine } from '#shared/domain/machine.ts';
import { MACHINE_LABELS } from '#shared/domain/names.ts';

import { leftoverOf } from './disk.ts';
import { readInstance, toMachine } from './machine.ts';

const warningSchema = z.object({ code: z.string().nullish() }).nullish();

/** What a page has of one zone or region. */
const scopeSchema = z.object({
  instances: z.array(z.unknown()).nullish(),
  disks: z.array(z.unknown()).nullish(),
  warning: warningSchema,
});
type Scope = z.infer<typeof scopeSchema>;

const pageSchema = z.object({
  items: z.record(z.string(), scopeSchema).nullish(),
  nextPageToken: z.string().nullish(),
  unreachables: z.array(z.string()).nullish(),
  warning: warningSchema,
});
type Page = z.infer<typeof pageSchema>;

/** The only warning that says nothing bad: this page has nothing of that zone. */
const NOTHING_HERE = 'NO_RESULTS_ON_PAGE';

const isBad = (warning: Page['warning']): boolean => Boolean(warning?.code) && warning?.code !== NOTHING_HERE;

/** The zone in `zones/z`, `projects/p/zones/z` or a URL that ends so; undefined for any other scope. */
const zoneIn = (scope: string): string | undefined =>
  /(?:^|\/)zones\/(?<zone>[^/]+)$/u.exec(scope)?.groups?.['zone'];

/** Scopes of a page that could not be seen. */
const unseenIn = (page: Page): readonly string[] => [
  ...Object.entries(page.items ?? {}).flatMap(([scope, { warning }]) => (isBad(warning) ? [scope] : [])),
  ...(page.unreachables ?? []),
];

/** Whose machines are meant: an installation's, or of them those of one Proxy. */
export interface Owner {
  readonly installation: string;
  readonly uid?: string | undefined;
}

const equal = (label: string, value: string): string => `labels.${label} = "${value}"`;

/** The filter that the list is asked with; Google takes quoted literals only, and several in parentheses. */
export const ownerFilter = ({ installation, uid }: Owner): string =>
  uid === undefined
    ? equal(MACHINE_LABELS.installation, installation)
    : `(${equal(MACHINE_LABELS.installation, installation)}) AND (${equal(MACHINE_LABELS.uid, uid)})`;

/** What the filter let through is checked again. */
const isOf = (owner: Owner, found: Pick<Machine, 'installation' | 'uid'>): boolean =>
  found.installation === owner.installation && (owner.uid === undefined || found.uid === owner.uid);

export type PageSource = (filter: string, pageToken: string | undefined) => Promise<unknown>;

const readPage = async (source: PageSource, filter: string, token: string | undefined): Promise<Page> => {
  const page = pageSchema.safeParse(await source(filter, token));
  if (page.success) return page.data;
  throw new SystemError('Transient', 'Compute Engine aggregatedList gave a reply that cannot be read.', {
    cause: page.error,
  });
};

/** What the entries of all pages become, and what could not be seen. Throws when any page cannot be had: half a list is none. */
const listEverywhere = async <T>(
  source: PageSource,
  owner: Owner,
  read: (scope: Scope) => readonly T[],
): Promise<Coverage & { readonly found: readonly T[] }> => {
  const found: T[] = [];
  const unknownZones = new Set<string>();
  const tokens = new Set<string>();
  let partial = false;
  for (let token: string | undefined; ;) {
    const page = await readPage(source, ownerFilter(owner), token);
    found.push(...Object.values(page.items ?? {}).flatMap(read));
    for (const scope of unseenIn(page)) {
      const zone = zoneIn(scope);
      if (zone === undefined) partial = true;
      else unknownZones.add(zone);
    }
    partial ||= isBad(page.warning);
    token = page.nextPageToken ? page.nextPageToken : undefined;
    if (token === undefined) break;
    if (tokens.has(token)) throw new SystemError('Transient', 'Compute Engine repeats a page of its list.');
    tokens.add(token);
  }
  return { found, unknownZones: [...unknownZones].sort(), partial };
};

/** All machines of an owner. Throws `SystemError` when any page cannot be had. */
export const listFleet = async (
  source: PageSource,
  projectId: string,
  owner: Owner,
): Promise<FleetListing> => {
  const { found, ...coverage } = await listEverywhere(source, owner, ({ instances }) =>
    (instances ?? []).map((instance) => toMachine(readInstance(instance), projectId)),
  );
  return { machines: found.filter((machine) => isOf(owner, machine)), ...coverage };
};

/** All boot disks of an owner that nothing uses. Throws as `listFleet` does. */
export const listDisks = async (source: PageSource, owner: Owner): Promise<LeftoverListing> => {
  const { found, ...coverage } = await listEverywhere(source, owner, ({ disks }) =>
    (disks ?? []).map(leftoverOf).filter((leftover) => leftover !== undefined),
  );
  return { leftovers: found.filter((leftover) => isOf(owner, leftover)), ...coverage };
};
