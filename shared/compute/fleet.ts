/** The list over all zones: every page, and what could not be seen. */

import { z } from 'zod';

import { SystemError } from '#shared/app/errors.ts';
import type { FleetListing, Machine } from '#shared/domain/machine.ts';
import { MACHINE_LABELS } from '#shared/domain/names.ts';

import { instanceSchema, toMachine } from './machine.ts';

const warningSchema = z.object({ code: z.string().nullish() }).nullish();

const pageSchema = z.object({
  items: z
    .record(z.string(), z.object({ instances: z.array(instanceSchema).nullish(), warning: warningSchema }))
    .nullish(),
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

/** The filter that the list is asked with; Google takes quoted literals only. */
export const installationFilter = (installation: string): string =>
  `labels.${MACHINE_LABELS.installation} = "${installation}"`;

export type PageSource = (filter: string, pageToken: string | undefined) => Promise<unknown>;

const readPage = async (source: PageSource, filter: string, token: string | undefined): Promise<Page> => {
  const page = pageSchema.safeParse(await source(filter, token));
  if (page.success) return page.data;
  throw new SystemError('Transient', 'Compute Engine aggregatedList gave a reply that cannot be read.', {
    cause: page.error,
  });
};

/** All machines of an installation. Throws when any page cannot be had: half a list is none. */
export const listFleet = async (
  source: PageSource,
  projectId: string,
  installation: string,
): Promise<FleetListing> => {
  const machines: Machine[] = [];
  const unknownZones = new Set<string>();
  const tokens = new Set<string>();
  let partial = false;
  for (let token: string | undefined; ;) {
    const page = await readPage(source, installationFilter(installation), token);
    for (const { instances } of Object.values(page.items ?? {})) {
      for (const instance of instances ?? []) machines.push(toMachine(instance, projectId));
    }
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
  return {
    machines: machines.filter((machine) => machine.installation === installation),
    unknownZones: [...unknownZones].sort(),
    partial,
  };
};
