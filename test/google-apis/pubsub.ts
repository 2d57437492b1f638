/** Pub/Sub: Google's emulator, and beside it the policies that it does not have. */

import { z } from 'zod';

import { ApiError } from './errors.ts';
import { policyRoutes } from './policies.ts';
import { route, type Answer, type Route } from './routes.ts';
import type { Resource, World } from './world.ts';

const json = z.record(z.string(), z.unknown());

const failure = z.object({ error: z.object({ message: z.string(), status: z.string() }) });

const ask = async (world: World, method: string, path: string, raw?: Buffer): Promise<Resource> => {
  const answer = await fetch(`http://${world.pubsubHost}/${path}`, {
    method,
    headers: { 'content-type': 'application/json' },
    ...(raw && raw.length > 0 ? { body: new Uint8Array(raw) } : {}),
  });
  const body = json.parse(await answer.json());
  if (answer.ok) return body;
  const { error } = failure.parse(body);
  throw new ApiError(answer.status, 'backendError', error.status, error.message);
};

const forward: Answer = (world, { method, path, query, raw }) => {
  const search = query.size > 0 ? `?${query.toString()}` : '';
  return ask(world, method, `${path.replace('pubsub/', '')}${search}`, raw);
};

const remove: Answer = async (world, request) => {
  const gone = await forward(world, request);
  world.policies.delete(request.path.replace('pubsub/v1', 'pubsub'));
  return gone;
};

const exists = async (world: World, key: string): Promise<boolean> => {
  await ask(world, 'GET', key.replace('pubsub/', 'v1/'));
  return true;
};

/** Topics and subscriptions that there are, by name below the project. */
export const pubsubNames = async (world: World): Promise<readonly string[]> => {
  const names = z.array(z.object({ name: z.string() })).default([]);
  const lists = await Promise.all(
    ['topics', 'subscriptions'].map(async (kind) =>
      names.parse((await ask(world, 'GET', `v1/projects/${world.projectId}/${kind}`))[kind]),
    ),
  );
  return lists.flat().map(({ name }) => `pubsub/${name}`);
};

const routesOf = (kind: string): readonly Route[] => {
  const one = `pubsub/v1/projects/{project}/${kind}/{id}`;
  return [
    ...['GET', 'PUT', 'PATCH'].map((method) => route(`${method} ${one}`, forward)),
    route(`DELETE ${one}`, remove),
    ...policyRoutes('pubsub/v1', `projects/{project}/${kind}/{id}`, { exists }),
  ];
};

export const pubsubRoutes: readonly Route[] = [...routesOf('topics'), ...routesOf('subscriptions')];
