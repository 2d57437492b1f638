/** Service Usage, and the project in Resource Manager. */

import { z } from 'zod';

import { begin, longRunning } from './operations.ts';
import { policyRoutes } from './policies.ts';
import { route, type Route } from './routes.ts';
import { known } from './collection.ts';
import type { Resource, World } from './world.ts';

const serviceResource = (world: World, name: string): Resource => ({
  name: `projects/${world.projectNumber}/services/${name}`,
  parent: `projects/${world.projectNumber}`,
  config: { name },
  state: 'ENABLED',
});

const batch = z.strictObject({ serviceIds: z.array(z.string()) });

const enable = (world: World, services: readonly string[]): Resource =>
  longRunning(
    begin(world, {
      under: 'operations/',
      kind: 'enable',
      target: services.join(),
      finish: () => {
        for (const service of services) world.enabled.add(service);
        return {};
      },
    }),
  );

export const serviceUsageRoutes: readonly Route[] = [
  route('GET serviceusage/v1/projects/{project}/services', (world) => ({
    services: [...world.enabled].map((name) => serviceResource(world, name)),
  })),
  route('POST serviceusage/v1/projects/{project}/services:batchEnable', (world, { body }) =>
    enable(world, known(batch, body).serviceIds),
  ),
  route('POST serviceusage/v1/projects/{project}/services/{service}:enable', (world, { at }) =>
    enable(world, [at('service')]),
  ),
  route('GET cloudresourcemanager/v1/projects/{project}', (world) => ({
    projectId: world.projectId,
    projectNumber: world.projectNumber,
    name: world.projectId,
    lifecycleState: 'ACTIVE',
    createTime: '2026-01-01T00:00:00.000Z',
  })),
  ...policyRoutes('cloudresourcemanager/v1', 'projects/{project}', {
    reads: 'POST',
    exists: (world, key) => key === `cloudresourcemanager/projects/${world.projectId}`,
  }),
];
