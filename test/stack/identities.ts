/** The CRD, and cluster identities of the deployables, restricted by the very roles that are deployed. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

import { applyObject, parseManifests, type ApiAddress, type Manifest } from '#test/services/api.ts';
import { applyFile } from '#test/services/apply.ts';

const ROOT = join(import.meta.dirname, '../..');

/** Deployables that have rights in the cluster; the others have none, and so no identity either. */
export const CLUSTER_USERS = ['watcher', 'provision', 'gc'] as const;

/** With `PROXY_NAMESPACES=*` a role that is bound in one namespace is bound in all of them. */
const everywhere = (manifest: Manifest): Manifest =>
  manifest.kind === 'RoleBinding'
    ? { ...manifest, kind: 'ClusterRoleBinding', metadata: { name: `${manifest.metadata.name}-everywhere` } }
    : manifest;

/** Applies what an installation for all namespaces has in its cluster, Pods as machines included. */
export const applyInstallation = async (api: ApiAddress): Promise<void> => {
  await applyFile(api, join(ROOT, 'crds/proxy.yaml'));
  for (const file of ['rbac.yaml', 'kubernetes-provider/rbac-pods.yaml']) {
    const roles = parseManifests(await readFile(join(ROOT, 'terraform/cluster', file), 'utf8'));
    for (const manifest of roles) await applyObject(api, everywhere(manifest));
  }
};
