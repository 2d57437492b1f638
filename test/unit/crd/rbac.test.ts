import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';

const FILE = fileURLToPath(new URL('../../../terraform/cluster/rbac.yaml', import.meta.url));

const role = z.object({
  kind: z.literal('ClusterRole'),
  metadata: z.object({ name: z.string() }),
  rules: z.array(
    z.object({
      apiGroups: z.array(z.string()),
      resources: z.array(z.string()),
      resourceNames: z.array(z.string()).optional(),
      verbs: z.array(z.string()),
    }),
  ),
});
const binding = z.object({
  kind: z.enum(['RoleBinding', 'ClusterRoleBinding']),
  metadata: z.object({ name: z.string(), namespace: z.string().optional() }),
  roleRef: z.object({ kind: z.literal('ClusterRole'), name: z.string() }),
  subjects: z.array(z.object({ kind: z.literal('User'), name: z.string() })),
});

const documents = parseAllDocuments(await readFile(FILE, 'utf8')).map((document) =>
  z.discriminatedUnion('kind', [role, binding]).parse(document.toJS()),
);
const roles = documents.filter((document) => document.kind === 'ClusterRole');
const bindings = documents.filter((document) => document.kind !== 'ClusterRole');
const rules = roles.flatMap((each) => each.rules);

describe('rights in the cluster (W8)', () => {
  test('nothing is granted by a wildcard', () => {
    expect(rules.flatMap((rule) => [...rule.apiGroups, ...rule.resources, ...rule.verbs])).not.toContain('*');
  });

  test('no one creates, updates or deletes a Proxy', () => {
    const verbs = rules.filter((rule) => rule.resources.includes('proxies')).flatMap((rule) => rule.verbs);
    expect([...new Set(verbs)].sort()).toEqual(['get', 'list', 'patch', 'watch']);
  });

  test('Secrets are read by name only', () => {
    const verbs = rules.filter((rule) => rule.resources.includes('secrets')).flatMap((rule) => rule.verbs);
    expect([...new Set(verbs)]).toEqual(['get']);
  });

  test('Pods are not touched', () => {
    expect(rules.filter((rule) => rule.resources.some((name) => name.startsWith('pods')))).toEqual([]);
  });

  test('only the name of kube-system is granted in the whole cluster', () => {
    const wide = new Set(
      bindings.filter((each) => each.kind === 'ClusterRoleBinding').map((each) => each.roleRef.name),
    );
    const granted = roles.filter((each) => wide.has(each.metadata.name)).flatMap((each) => each.rules);
    expect(granted.map((rule) => [rule.resources, rule.resourceNames, rule.verbs])).toEqual([
      [['namespaces'], ['kube-system'], ['get']],
    ]);
  });

  test('each binding grants an existing role to one of the three identities that need the cluster', () => {
    const names = new Set(roles.map((each) => each.metadata.name));
    expect(bindings.filter((each) => !names.has(each.roleRef.name))).toEqual([]);
    const users = bindings.flatMap((each) => each.subjects.map(({ name }) => name));
    expect([...new Set(users)].sort()).toEqual(['gc', 'provision', 'watcher']);
  });
});
