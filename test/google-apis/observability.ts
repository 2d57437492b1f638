/** Cloud Logging's metrics, Cloud Monitoring's alert policies and dashboards. */

import { invalid } from './errors.ts';
import { collectionRoutes } from './collection.ts';
import { alertSchema, dashboardSchema, metricSchema } from './schemas.ts';
import type { Route } from './routes.ts';
import type { World } from './world.ts';

/** A policy may only name a metric of the project that is there. */
const requireMetrics = (world: World, text: string): void => {
  for (const [, name] of text.matchAll(/logging\.googleapis\.com\/user\/([\w-]+)/g)) {
    if (!world.resources.has(`logging/projects/${world.projectId}/metrics/${name}`))
      throw invalid(`Cannot find metric that matches type = "logging.googleapis.com/user/${name}".`);
  }
};

export const observabilityRoutes: readonly Route[] = [
  ...collectionRoutes({
    path: 'logging/v2/projects/{project}/metrics',
    plural: 'metrics',
    schema: metricSchema,
    idOf: (_request, body) => String(body['name']),
    complete: ({ body, id }) => ({ ...body, name: id }),
    update: 'PUT',
  }),
  ...collectionRoutes({
    path: 'monitoring/v3/projects/{project}/alertPolicies',
    plural: 'alertPolicies',
    schema: alertSchema,
    idOf: (_request, _body, world) => String(world.next()),
    complete: ({ world, body, name }) => {
      requireMetrics(world, JSON.stringify(body));
      return { enabled: true, ...body, name };
    },
  }),
  ...collectionRoutes({
    path: 'monitoring/v1/projects/{project}/dashboards',
    plural: 'dashboards',
    schema: dashboardSchema,
    idOf: (_request, _body, world) => `d-${world.next()}`,
    complete: ({ world, body, name }) => ({ ...body, name, etag: `e${world.next()}` }),
  }),
];
