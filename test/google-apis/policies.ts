/** IAM policies: read, changed and written back under an etag; nobody is bound who does not exist. */

import { createHash } from 'node:crypto';

import { z } from 'zod';

import { invalid, notFound, stale } from './errors.ts';
import { route, type ApiRequest, type Route } from './routes.ts';
import type { Binding, Policy, Resource, World } from './world.ts';

const policySchema = z.object({
  bindings: z
    .array(
      z.strictObject({
        role: z.string(),
        members: z.array(z.string()),
        condition: z.record(z.string(), z.unknown()).optional(),
      }),
    )
    .default([]),
  etag: z.string().optional(),
  version: z.number().optional(),
});

const etagOf = (bindings: readonly Binding[]): string =>
  createHash('sha256').update(JSON.stringify(bindings)).digest('base64').slice(0, 12);

const NOBODY: Policy = { version: 1, bindings: [], etag: etagOf([]) };

export const policyOf = (world: World, key: string): Policy => world.policies.get(key) ?? NOBODY;

const AGENT = /^service-\d+@gcp-sa-[a-z]+\.iam\.gserviceaccount\.com$/;

/** Accounts of other projects, groups and pools are not known here. */
const checkMember = (world: World, member: string): void => {
  const [kind, email = ''] = member.split(':');
  if (kind !== 'serviceAccount' || AGENT.test(email)) return;
  if (!email.endsWith(`@${world.projectId}.iam.gserviceaccount.com`)) return;
  if (!world.resources.has(`iam/projects/${world.projectId}/serviceAccounts/${email}`))
    throw invalid(`Service account ${email} does not exist.`);
};

const checkRole = (world: World, role: string): void => {
  if (role.startsWith('roles/')) return;
  if (world.resources.get(`iam/${role}`)?.['deleted'] !== undefined || !world.resources.has(`iam/${role}`))
    throw invalid(`Role ${role} does not exist.`);
};

const checkVersion = (policy: z.output<typeof policySchema>): void => {
  if (policy.bindings.some(({ condition }) => condition) && policy.version !== 3)
    throw invalid('A policy with conditions must have version 3.');
};

const write = (world: World, key: string, body: unknown): Resource => {
  const policy = policySchema.parse(body);
  const before = policyOf(world, key);
  if (policy.etag !== undefined && policy.etag !== before.etag) throw stale(`The policy of ${key}`);
  checkVersion(policy);
  const known = new Set(before.bindings.flatMap(({ members }) => members));
  for (const { role, members } of policy.bindings) {
    checkRole(world, role);
    for (const member of members) if (!known.has(member)) checkMember(world, member);
  }
  const after: Policy = {
    version: policy.version ?? 1,
    bindings: policy.bindings.filter(({ members }) => members.length > 0),
    etag: etagOf(policy.bindings),
  };
  if (after.bindings.length === 0) world.policies.delete(key);
  else world.policies.set(key, after);
  return { ...after };
};

/** Routes of a resource's policy. `name` is its path below the version; `separator` is what the verb follows. */
export const policyRoutes = (
  version: string,
  name: string,
  options: {
    readonly separator?: string;
    readonly reads?: 'GET' | 'POST';
    /** Whether the resource exists; default: as the stand-in remembers. */
    readonly exists?: (world: World, key: string) => boolean | Promise<boolean>;
  } = {},
): readonly Route[] => {
  const { separator = ':', reads = 'GET', exists = (world, key) => world.resources.has(key) } = options;
  const api = version.split('/')[0] ?? '';
  const keyOf = async (world: World, request: ApiRequest): Promise<string> => {
    const path = request.path.slice(version.length + 1);
    const key = `${api}/${decodeURIComponent(path.slice(0, path.lastIndexOf(separator)))}`;
    if (!(await exists(world, key))) throw notFound(key);
    return key;
  };
  return [
    route(`${reads} ${version}/${name}${separator}getIamPolicy`, async (world, request) => ({
      ...policyOf(world, await keyOf(world, request)),
    })),
    route(`POST ${version}/${name}${separator}setIamPolicy`, async (world, request) =>
      write(world, await keyOf(world, request), request.body['policy']),
    ),
  ];
};
