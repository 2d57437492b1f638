/** IAM: service accounts, and roles of the project, whose ids stay taken after they are deleted. */

import { z } from 'zod';

import { alreadyExists, notFound } from './errors.ts';
import { known } from './collection.ts';
import { route, type ApiRequest, type Route } from './routes.ts';
import type { Resource, World } from './world.ts';

const ACCOUNTS = 'iam/v1/projects/{project}/serviceAccounts';
const ROLES = 'iam/v1/projects/{project}/roles';

const accountSchema = z.strictObject({
  accountId: z.string().regex(/^[a-z][a-z0-9-]{4,28}[a-z0-9]$/),
  serviceAccount: z.strictObject({ displayName: z.string().optional(), description: z.string().optional() }),
});

export const createAccount = (world: World, accountId: string, about: Resource): Resource => {
  const email = `${accountId}@${world.projectId}.iam.gserviceaccount.com`;
  const name = `projects/${world.projectId}/serviceAccounts/${email}`;
  if (world.resources.has(`iam/${name}`)) throw alreadyExists(name);
  const uniqueId = `1${String(world.next()).padStart(20, '0')}`;
  const account = {
    name,
    email,
    projectId: world.projectId,
    uniqueId,
    oauth2ClientId: uniqueId,
    ...about,
  };
  world.resources.set(`iam/${name}`, account);
  return account;
};

const roleSchema = z.strictObject({
  title: z.string().max(100),
  description: z.string().optional(),
  stage: z.string().optional(),
  includedPermissions: z.array(z.string().regex(/^\w+\.\w+\.\w+$/)).min(1),
});
const newRoleSchema = z.strictObject({ roleId: z.string().regex(/^[\w.]{3,64}$/), role: roleSchema });

const keyOf = ({ path }: ApiRequest): string =>
  decodeURIComponent(path.replace('/v1', '').replace(/:\w+$/, ''));

const find = (world: World, key: string): Resource => {
  const found = world.resources.get(key);
  if (!found) throw notFound(key);
  return found;
};

const keep = (world: World, key: string, resource: Resource): Resource => {
  world.resources.set(key, resource);
  return resource;
};

const createRole = (world: World, request: ApiRequest): Resource => {
  const { roleId, role } = known(newRoleSchema, request.body);
  const key = `${keyOf(request)}/${roleId}`;
  if (world.resources.has(key)) throw alreadyExists(key);
  return keep(world, key, { name: key.replace('iam/', ''), ...role, etag: `e${world.next()}` });
};

const updateRole = (world: World, request: ApiRequest): Resource => {
  const before = find(world, keyOf(request));
  const role = known(roleSchema.partial(), request.body);
  return keep(world, keyOf(request), { ...before, ...role, etag: `e${world.next()}` });
};

const removeRole = (world: World, request: ApiRequest): Resource =>
  keep(world, keyOf(request), { ...find(world, keyOf(request)), deleted: true });

const restoreRole = (world: World, request: ApiRequest): Resource => {
  const { deleted: _, ...role } = find(world, keyOf(request));
  return keep(world, keyOf(request), role);
};

export const iamRoutes: readonly Route[] = [
  route(`POST ${ACCOUNTS}`, (world, { body }) => {
    const { accountId, serviceAccount } = known(accountSchema, body);
    return createAccount(world, accountId, serviceAccount);
  }),
  route(`GET ${ACCOUNTS}/{account}`, (world, request) => find(world, keyOf(request))),
  route(`PATCH ${ACCOUNTS}/{account}`, (world, request) => {
    const { serviceAccount } = z
      .object({ serviceAccount: z.record(z.string(), z.unknown()) })
      .parse(request.body);
    return keep(world, keyOf(request), { ...find(world, keyOf(request)), ...serviceAccount });
  }),
  route(`DELETE ${ACCOUNTS}/{account}`, (world, request) => {
    find(world, keyOf(request));
    world.resources.delete(keyOf(request));
    return {};
  }),
  route(`POST ${ROLES}`, createRole),
  route(`GET ${ROLES}/{role}`, (world, request) => find(world, keyOf(request))),
  route(`PATCH ${ROLES}/{role}`, updateRole),
  route(`DELETE ${ROLES}/{role}`, removeRole),
  route(`POST ${ROLES}/{role}:undelete`, restoreRole),
];
