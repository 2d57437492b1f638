/** Compute Engine's networking, as far as an installation has a part in it, and the cluster that it finds. */

import type { z } from 'zod';

import { inUse, notFound, stale } from './errors.ts';
import { collectionRoutes, requireLinked, type Change, type Collection } from './collection.ts';
import { policyRoutes } from './policies.ts';
import { addressSchema, firewallSchema, networkSchema, routerSchema, subnetworkSchema } from './schemas.ts';
import { begin, computeOperation } from './operations.ts';
import { route, type ApiRequest, type Route } from './routes.ts';
import type { Resource, World } from './world.ts';

const common = ({ world, name, before }: Change): Resource => ({
  id: before?.['id'] ?? `${4_000_000_000_000_000_000n + BigInt(world.next())}`,
  selfLink: `https://www.googleapis.com/compute/v1/${name}`,
  creationTimestamp: before?.['creationTimestamp'] ?? '2026-01-01T00:00:00.000-00:00',
});

/** Whether anybody but itself names a resource by its link. */
const usersOf = (world: World, name: string): readonly string[] =>
  [...world.resources]
    .filter(([key, resource]) => key !== `compute/${name}` && JSON.stringify(resource).includes(`${name}"`))
    .map(([key]) => key);

const release = (world: World, name: string): void => {
  const [user] = usersOf(world, name);
  if (user !== undefined) throw inUse(name, user);
};

const base = (scope: string, plural: string, schema: z.ZodType<Resource>): Collection => ({
  path: `compute/v1/projects/{project}/${scope}/${plural}`,
  plural: 'items',
  schema,
  idOf: (_request, body) => String(body['name']),
  complete: (change) => ({ ...change.body, ...common(change) }),
  release,
  operations: (name) =>
    `${name
      .split('/')
      .slice(0, scope === 'global' ? 3 : 4)
      .join('/')}/operations/`,
});

const fingerprint = (world: World): string => Buffer.from(String(world.next())).toString('base64');

const collections: readonly Collection[] = [
  base('global', 'networks', networkSchema),
  {
    ...base('regions/{region}', 'subnetworks', subnetworkSchema),
    complete: (change) => {
      requireLinked(change.world, 'compute', change.body['network']);
      return {
        ...change.body,
        ...common(change),
        fingerprint: fingerprint(change.world),
        purpose: 'PRIVATE',
        stackType: 'IPV4_ONLY',
        privateIpv6GoogleAccess: 'DISABLE_GOOGLE_ACCESS',
        gatewayAddress: '10.0.0.1',
      };
    },
  },
  {
    ...base('regions/{region}', 'addresses', addressSchema),
    complete: (change) => ({
      addressType: 'EXTERNAL',
      networkTier: 'PREMIUM',
      address: change.before?.['address'] ?? `203.0.113.${change.world.next() % 200}`,
      status: 'RESERVED',
      labelFingerprint: fingerprint(change.world),
      ...change.body,
      ...common(change),
    }),
  },
  {
    ...base('regions/{region}', 'routers', routerSchema),
    complete: (change) => {
      requireLinked(change.world, 'compute', change.body['network']);
      return { ...change.body, ...common(change) };
    },
  },
  {
    ...base('global', 'firewalls', firewallSchema),
    complete: (change) => {
      requireLinked(change.world, 'compute', change.body['network']);
      return { ...change.body, ...common(change) };
    },
  },
];

const setLabels = (world: World, { path, body }: ApiRequest): Resource => {
  const name = path.replace('compute/v1/', '').replace('/setLabels', '');
  const key = `compute/${name}`;
  const address = world.resources.get(key);
  if (!address) throw notFound(name);
  if (body['labelFingerprint'] !== address['labelFingerprint']) throw stale(`The labels of ${name}`);
  const after = { ...address, labels: body['labels'], labelFingerprint: fingerprint(world) };
  const finish = (): Resource => {
    world.resources.set(key, after);
    return after;
  };
  const under = `${name.split('/').slice(0, 4).join('/')}/operations/`;
  return computeOperation(begin(world, { under, kind: 'setLabels', target: name, finish }));
};

export const computeRoutes: readonly Route[] = [
  ...collections.flatMap((collection) => collectionRoutes(collection)),
  route('POST compute/v1/projects/{project}/regions/{region}/addresses/{address}/setLabels', setLabels),
  ...policyRoutes('compute/v1', 'projects/{project}/regions/{region}/subnetworks/{subnetwork}', {
    separator: '/',
  }),
];
