/** Paths of the API, and what they call. */

import type { ApiMethod } from './faults.ts';

export interface Route {
  readonly method: ApiMethod;
  readonly project: string;
  readonly zone: string;
  readonly name: string;
}

const ROUTES: readonly (readonly [httpMethod: string, path: string, method: ApiMethod])[] = [
  ['GET', '', 'projects.get'],
  ['GET', '/zones', 'zones.list'],
  ['GET', '/aggregated/instances', 'instances.aggregatedList'],
  ['GET', '/aggregated/disks', 'disks.aggregatedList'],
  ['GET', '/zones/:zone', 'zones.get'],
  ['GET', '/zones/:zone/instances', 'instances.list'],
  ['POST', '/zones/:zone/instances', 'instances.insert'],
  ['GET', '/zones/:zone/instances/:name', 'instances.get'],
  ['DELETE', '/zones/:zone/instances/:name', 'instances.delete'],
  ['POST', '/zones/:zone/instances/:name/start', 'instances.start'],
  ['POST', '/zones/:zone/instances/:name/stop', 'instances.stop'],
  ['POST', '/zones/:zone/instances/:name/setLabels', 'instances.setLabels'],
  ['POST', '/zones/:zone/instances/:name/setMetadata', 'instances.setMetadata'],
  ['GET', '/zones/:zone/disks', 'disks.list'],
  ['GET', '/zones/:zone/disks/:name', 'disks.get'],
  ['DELETE', '/zones/:zone/disks/:name', 'disks.delete'],
  ['GET', '/zones/:zone/operations', 'operations.list'],
  ['GET', '/zones/:zone/operations/:name', 'operations.get'],
  ['POST', '/zones/:zone/operations/:name/wait', 'operations.wait'],
];

const PREFIX = '/compute/v1/projects/:project';

const compiled = ROUTES.map(([httpMethod, path, method]) => ({
  httpMethod,
  method,
  pattern: new RegExp(`^${`${PREFIX}${path}`.replaceAll(/:(\w+)/gu, '(?<$1>[^/]+)')}$`, 'u'),
}));

const decode = (part: string | undefined): string => {
  try {
    return decodeURIComponent(part ?? '');
  } catch {
    return part ?? '';
  }
};

/** The call behind a path; undefined when there is none. */
export const routeOf = (httpMethod: string, path: string): Route | undefined => {
  for (const route of compiled) {
    const groups = route.httpMethod === httpMethod ? route.pattern.exec(path)?.groups : undefined;
    if (groups) {
      return {
        method: route.method,
        project: decode(groups['project']),
        zone: decode(groups['zone']),
        name: decode(groups['name']),
      };
    }
  }
  return undefined;
};
