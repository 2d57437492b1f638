/** Aggregated lists: every zone on every page, with warnings for what a page does not show. */

import { ApiError } from './errors.ts';
import { pageOf, select } from './pages.ts';
import type { Resource } from './resources.ts';
import type { World } from './world.ts';

const warning = (code: string, message: string, zone: string): Resource => ({
  warning: { code, message, data: [{ key: 'scope', value: `zones/${zone}` }] },
});

const zoneOf = (resource: Resource): string =>
  typeof resource['zone'] === 'string' ? (resource['zone'].split('/').at(-1) ?? '') : '';

/**
 * Zones that cannot be reached are left out with a warning when `allowsPartial`, which a caller asks for with
 * `returnPartialSuccess` or, since that parameter has gone from it, with a dated version of the API; else the call fails.
 */
export const aggregatedList = (
  world: World,
  kind: 'instance' | 'disk',
  all: readonly Resource[],
  { query, allowsPartial }: { readonly query: URLSearchParams; readonly allowsPartial: boolean },
): Resource => {
  const outages = new Map(
    world.zones.flatMap((zone) => {
      const fault = world.faults.unreachable(zone);
      return fault ? [[zone, fault.how ?? 'both'] as const] : [];
    }),
  );
  if (outages.size > 0 && !allowsPartial) {
    throw new ApiError(503, 'backendError', 'The service is currently unavailable.');
  }
  const visible = all.filter((resource) => !outages.has(zoneOf(resource)));
  const zoneFirst = [...select(visible, query)].sort(
    (a, b) => world.zones.indexOf(zoneOf(a)) - world.zones.indexOf(zoneOf(b)),
  );
  const { items, nextPageToken } = pageOf(zoneFirst, query, world.longestPage);
  const byZone = Map.groupBy(items, zoneOf);
  const scopes = world.zones.map((zone): readonly [string, Resource] => {
    const scope = `zones/${zone}`;
    const how = outages.get(zone);
    if (how === 'warning' || how === 'both') {
      return [scope, warning('UNREACHABLE', `The zone '${zone}' is unreachable.`, zone)];
    }
    const here = byZone.get(zone);
    return [
      scope,
      here
        ? { [`${kind}s`]: here }
        : warning('NO_RESULTS_ON_PAGE', `There are no results for scope '${scope}' on this page.`, zone),
    ];
  });
  const unreachables = [...outages].filter(([, how]) => how !== 'warning').map(([zone]) => `zones/${zone}`);
  return {
    kind: `compute#${kind}AggregatedList`,
    id: `projects/${world.projectId}/aggregated/${kind}s`,
    items: Object.fromEntries(scopes),
    ...(nextPageToken === undefined ? {} : { nextPageToken }),
    ...(unreachables.length > 0 ? { unreachables } : {}),
  };
};
