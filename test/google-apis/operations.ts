/**
 * Long-running operations: the work is not done by the call that begins it, but when its caller first asks for it. A caller
 * that does not ask never sees it done. (A clock would cost a test ten seconds each, which is how long the provider sleeps.)
 */

import { notFound } from './errors.ts';
import { route, type Route } from './routes.ts';
import type { Operation, Resource, World } from './world.ts';

export interface Work {
  /** What the operation's name begins with, such as `projects/p/locations/l/operations/`. */
  readonly under: string;
  /** `insert`, `delete`, `patch` …, and the resource that it is about. */
  readonly kind: string;
  readonly target: string;
  readonly finish: () => Resource;
}

/** Starts work, and gives its operation. */
export const begin = (world: World, { under, kind, target, finish }: Work): Operation => {
  const operation: Operation = {
    name: `${under}operation-${world.next()}`,
    kind,
    target,
    done: false,
    response: {},
    finish,
  };
  world.operations.set(operation.name, operation);
  return operation;
};

/** As most APIs word it. */
export const longRunning = ({ name, kind, target, done, response }: Operation): Resource => ({
  name,
  metadata: { verb: kind, target },
  ...(done ? { done, response: { '@type': 'type.googleapis.com/google.protobuf.Any', ...response } } : {}),
});

/** Where a client asks for it; a global operation has none. */
const regionOf = (name: string): Resource => {
  const region = /^projects\/[^/]+\/regions\/[^/]+/.exec(name)?.[0];
  return region === undefined ? {} : { region: `https://www.googleapis.com/compute/v1/${region}` };
};

/** As Compute Engine words it. */
export const computeOperation = ({ name, kind, target, done }: Operation): Resource => ({
  kind: 'compute#operation',
  ...regionOf(name),
  name: name.split('/').at(-1),
  operationType: kind,
  status: done ? 'DONE' : 'RUNNING',
  progress: done ? 100 : 0,
  targetLink: target,
});

const find = (world: World, name: string): Operation => {
  const operation = world.operations.get(name);
  if (!operation) throw notFound(`Operation ${name}`);
  if (!operation.done) operation.response = operation.finish();
  operation.done = true;
  return operation;
};

const poll = (version: string, name: string): Route =>
  route(`GET ${version}/${name}`, (world, { path }) =>
    longRunning(find(world, path.slice(version.length + 1))),
  );

export const operationRoutes: readonly Route[] = [
  poll('serviceusage/v1', 'operations/{id}'),
  poll('cloudfunctions/v2', 'projects/{project}/locations/{location}/operations/{id}'),
  poll('artifactregistry/v1', 'projects/{project}/locations/{location}/operations/{id}'),
  poll('firestore/v1', 'projects/{project}/databases/{database}/operations/{id}'),
  ...['global', 'regions/{region}'].map((scope) =>
    route(`GET compute/v1/projects/{project}/${scope}/operations/{id}`, (world, { path }) =>
      computeOperation(find(world, path.replace('compute/v1/', ''))),
    ),
  ),
];
