/** Collections of resources as most of the APIs have them: create, get, list, update by mask, delete. */

import { z } from 'zod';

import { alreadyExists, invalid, notFound } from './errors.ts';
import { begin, longRunning, computeOperation } from './operations.ts';
import { route, type ApiRequest, type Route } from './routes.ts';
import type { Resource, World } from './world.ts';

export interface Change {
  readonly world: World;
  /** Path below the version, such as `projects/p/topics/t`, and its last segment. */
  readonly name: string;
  readonly id: string;
  readonly body: Resource;
  /** Absent when it is created. */
  readonly before: Resource | undefined;
}

export interface Collection {
  /** With the API's name and version first: `run/v2/projects/{project}/locations/{location}/services`. */
  readonly path: string;
  /** What its list is called in an answer. */
  readonly plural: string;
  /** What a client may send; a field that is not in it is refused. */
  readonly schema: z.ZodType<Resource>;
  readonly idOf: (request: ApiRequest, body: Resource, world: World) => string;
  /** The resource as the server keeps it: with its own fields and defaults. Refuses what names something unknown. */
  readonly complete: (change: Change) => Resource;
  /** Refuses to delete what is in use. */
  readonly release?: (world: World, name: string, resource: Resource) => void;
  /** Where its changes are operations: what their names begin with. Absent: changes are done when they are answered. */
  readonly operations?: (name: string) => string;
  /** Whether a deletion is done when it is answered, though others are operations. */
  readonly deletesAtOnce?: boolean;
  /** How it is updated; default PATCH. */
  readonly update?: 'PATCH' | 'PUT' | 'never';
}

const unknownField = (issue: z.core.$ZodIssue): string =>
  issue.code === 'unrecognized_keys'
    ? `Unknown name "${issue.keys.join()}" at '${issue.path.join('.')}': Cannot find field.`
    : `Invalid value at '${issue.path.join('.')}': ${issue.message}`;

/** What a client sent, if every field of it is known. */
export const known = <T>(schema: z.ZodType<T>, body: unknown): T => {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  throw invalid(
    `Invalid JSON payload received. ${parsed.error.issues.map((issue) => unknownField(issue)).join(' ')}`,
  );
};

const apiOf = (path: string): string => path.slice(0, path.indexOf('/'));
const versionOf = (path: string): string => path.split('/').slice(0, 2).join('/');

export const keyOf = (path: string, name: string): string => `${apiOf(path)}/${name}`;

const nested = (value: unknown): Resource => z.record(z.string(), z.unknown()).catch({}).parse(value);

const replaced = (target: Resource, source: Resource, path: readonly string[]): Resource => {
  const [field = '', ...rest] = path;
  if (rest.length > 0)
    return { ...target, [field]: replaced(nested(target[field]), nested(source[field]), rest) };
  const { [field]: _, ...others } = target;
  return source[field] === undefined ? others : { ...others, [field]: source[field] };
};

const camel = (path: string): string =>
  path.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

/** What a client's update makes of a resource: fields in the mask are replaced, or without one all that are given. */
const updated = (before: Resource, body: Resource, mask: string | null): Resource => {
  if (mask === null) return { ...before, ...body };
  return mask.split(',').reduce((resource, path) => replaced(resource, body, camel(path).split('.')), before);
};

/** Answers with the resource, or with an operation at whose end it is there. */
const done = (
  world: World,
  { path, operations }: Collection,
  kind: string,
  name: string,
  finish: () => Resource,
): Resource => {
  if (!operations) return finish();
  const operation = begin(world, { under: operations(name), kind, target: name, finish });
  return apiOf(path) === 'compute' ? computeOperation(operation) : longRunning(operation);
};

const existing = (world: World, path: string, name: string): Resource => {
  const resource = world.resources.get(keyOf(path, name));
  if (!resource) throw notFound(name);
  return resource;
};

const create =
  (collection: Collection) =>
  (world: World, request: ApiRequest): Resource => {
    const { path, schema, complete, idOf } = collection;
    const body = known(schema, request.body);
    const id = idOf(request, body, world);
    const name = `${request.path.slice(versionOf(path).length + 1)}/${id}`;
    const key = keyOf(path, name);
    if (world.resources.has(key)) throw alreadyExists(name);
    const resource = complete({ world, name, id, body, before: undefined });
    // There at once, so that nobody else takes the name.
    world.resources.set(key, resource);
    return done(world, collection, 'insert', name, () => resource);
  };

const update =
  (collection: Collection) =>
  (world: World, request: ApiRequest): Resource => {
    const { path, schema, complete, update: method } = collection;
    const name = decodeURIComponent(request.path.slice(versionOf(path).length + 1));
    const before = existing(world, path, name);
    const given = known(schema, request.body);
    const mask = request.query.get('updateMask');
    const body = method === 'PUT' ? given : updated(before, given, mask);
    const resource = complete({ world, name, id: name.split('/').at(-1) ?? '', body, before });
    return done(world, collection, 'update', name, () => {
      world.resources.set(keyOf(path, name), resource);
      return resource;
    });
  };

const remove =
  (collection: Collection) =>
  (world: World, request: ApiRequest): Resource => {
    const { path, release } = collection;
    const name = decodeURIComponent(request.path.slice(versionOf(path).length + 1));
    const resource = existing(world, path, name);
    release?.(world, name, resource);
    const finish = (): Resource => {
      const key = keyOf(path, name);
      world.resources.delete(key);
      world.policies.delete(key);
      return {};
    };
    if (collection.deletesAtOnce) finish();
    return done(world, collection, 'delete', name, finish);
  };

const list =
  ({ path, plural }: Collection) =>
  (world: World, request: ApiRequest): Resource => {
    const under = keyOf(path, request.path.slice(versionOf(path).length + 1));
    return {
      [plural]: [...world.resources]
        .filter(([key]) => key.startsWith(`${under}/`) && !key.slice(under.length + 1).includes('/'))
        .map(([, resource]) => resource),
    };
  };

export const collectionRoutes = (collection: Collection): readonly Route[] => {
  const { path, update: method = 'PATCH' } = collection;
  const one = `${path}/{id}`;
  return [
    route(`POST ${path}`, create(collection)),
    route(`GET ${path}`, list(collection)),
    route(`GET ${one}`, (world, request) =>
      existing(world, path, decodeURIComponent(request.path.slice(versionOf(path).length + 1))),
    ),
    ...(method === 'never' ? [] : [route(`${method} ${one}`, update(collection))]),
    route(`DELETE ${one}`, remove(collection)),
  ];
};

/** A resource that another one names must exist. `link` may be a URL. */
export const requireLinked = (world: World, api: string, link: unknown): void => {
  const name = String(link).replace(/^.*?(?=projects\/)/, '');
  if (!world.resources.has(`${api}/${name}`)) throw invalid(`The resource '${name}' does not exist.`);
};
