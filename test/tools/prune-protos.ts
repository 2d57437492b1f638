/**
 * Google's clients parse the description of their whole API whenever one is made: 12 MB of JSON for Compute Engine, every
 * message of Firestore's administration. The bundles hold what the methods that they call can reach.
 */

import { readFile } from 'node:fs/promises';

import type { Plugin } from 'esbuild';
import { z } from 'zod';

/** A node of protobuf.js' JSON: a namespace, message, enum or service. What is not named here is kept as it is. */
interface Node {
  [key: string]: unknown;
  fields?: Record<string, { type: string }>;
  methods?: Record<string, { requestType: string; responseType: string }>;
  values?: Record<string, number>;
  nested?: Record<string, Node>;
}
const nodeSchema: z.ZodType<Node> = z.lazy(() =>
  z.looseObject({
    fields: z.record(z.string(), z.looseObject({ type: z.string() })).exactOptional(),
    methods: z
      .record(z.string(), z.looseObject({ requestType: z.string(), responseType: z.string() }))
      .exactOptional(),
    values: z.record(z.string(), z.number()).exactOptional(),
    nested: z.record(z.string(), nodeSchema).exactOptional(),
  }),
);

/** Full names of services, each with the methods that are called. */
export type Services = Readonly<Record<string, 'all' | readonly string[]>>;

/** Of proto3, which have no node. */
const SCALARS =
  /^(?:double|float|bool|string|bytes|u?int32|u?int64|sint32|sint64|fixed32|fixed64|sfixed32|sfixed64)$/;

const pathOf = (scope: string, name: string): string => (scope === '' ? name : `${scope}.${name}`);

const nodesOf = (root: Node): ReadonlyMap<string, Node> => {
  const nodes = new Map<string, Node>();
  const add = (node: Node, scope: string): void => {
    for (const [name, child] of Object.entries(node.nested ?? {})) {
      nodes.set(pathOf(scope, name), child);
      add(child, pathOf(scope, name));
    }
  };
  add(root, '');
  return nodes;
};

/** As protobuf.js finds them: a full name begins with a dot, any other is looked for outwards from where it stands. */
const resolve = (nodes: ReadonlyMap<string, Node>, scope: string, type: string): string => {
  if (type.startsWith('.')) return type.slice(1);
  for (let parts = scope.split('.'); ; parts = parts.slice(0, -1)) {
    const path = [...parts, type].join('.');
    if (nodes.has(path)) return path;
    if (parts.length === 0) throw new Error(`the protos have no ${type}, which ${scope} names`);
  }
};

const typesIn = ({ fields = {}, methods = {} }: Node): readonly string[] =>
  [
    ...Object.values(fields).map(({ type }) => type),
    ...Object.values(methods).flatMap(({ requestType, responseType }) => [requestType, responseType]),
  ].filter((type) => !SCALARS.test(type));

/** The paths that `roots` lead to, themselves included. */
const reachable = (nodes: ReadonlyMap<string, Node>, roots: readonly string[]): ReadonlySet<string> => {
  const found = new Set<string>();
  const open = [...roots];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    const node = nodes.get(path);
    if (!node || found.has(path)) continue;
    found.add(path);
    for (const type of typesIn(node)) open.push(resolve(nodes, path, type));
  }
  return found;
};

/** A copy with nothing in it but what is kept, and the namespaces around that. */
const copyOf = (node: Node, kept: ReadonlySet<string>, path = ''): Node | undefined => {
  const children = Object.entries(node.nested ?? {}).flatMap(([name, child]) => {
    const copy = copyOf(child, kept, pathOf(path, name));
    return copy ? [[name, copy] as const] : [];
  });
  if (children.length === 0 && !kept.has(path)) return undefined;
  const { nested: _all, ...own } = node;
  const isNamespace = !node.fields && !node.methods && !node.values;
  return {
    // A message that is not kept may be the namespace of one that is.
    ...(kept.has(path) || isNamespace ? own : {}),
    ...(children.length === 0 ? {} : { nested: Object.fromEntries(children) }),
  };
};

const withMethods = (node: Node, service: string, wanted: readonly string[]): void => {
  const { methods = {} } = node;
  const missing = wanted.find((name) => !methods[name]);
  if (missing !== undefined) throw new Error(`the protos have no method ${missing} in ${service}`);
  Object.assign(node, {
    methods: Object.fromEntries(Object.entries(methods).filter(([name]) => wanted.includes(name))),
  });
};

/** `protos` with no more in it than `services` reach. Throws on a layout that is not known. */
export const pruneProtos = (protos: unknown, services: Services): unknown => {
  const root = structuredClone(nodeSchema.parse(protos));
  const nodes = nodesOf(root);
  for (const [service, methods] of Object.entries(services)) {
    const node = nodes.get(service);
    if (!node?.methods) throw new Error(`the protos have no service ${service}`);
    if (methods !== 'all') withMethods(node, service, methods);
  }
  return copyOf(root, reachable(nodes, Object.keys(services)));
};

/** Replaces files of protobuf.js' JSON in a bundle, each named by the end of its path. */
export const prunedProtos = (files: Readonly<Record<string, Services>>): Plugin => ({
  name: 'pruned-protos',
  setup: (build) => {
    // The filter runs as a Go expression, which knows no `u` flag.
    build.onLoad({ filter: /\/protos\/\w+\.json$/ }, async ({ path }) => {
      const services = Object.entries(files).find(([end]) => path.endsWith(`/node_modules/${end}`))?.[1];
      if (!services) return undefined;
      const protos: unknown = JSON.parse(await readFile(path, 'utf8'));
      return { contents: JSON.stringify(pruneProtos(protos, services)), loader: 'json' };
    });
  },
});
