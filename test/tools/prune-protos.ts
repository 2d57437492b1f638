/**
 * The Compute client parses the description of the whole API, 12 MB of JSON, whenever it is made. The bundles hold what
 * the services that they call can reach.
 */

import { readFile } from 'node:fs/promises';

import type { Plugin } from 'esbuild';
import { z } from 'zod';

/** A node of protobuf.js' JSON: a namespace, message, enum or service. What is not named here is kept as it is. */
interface Node {
  [key: string]: unknown;
  fields?: Record<string, { type: string }>;
  methods?: Record<string, { requestType: string; responseType: string }>;
  nested?: Record<string, Node>;
}
const nodeSchema: z.ZodType<Node> = z.lazy(() =>
  z.looseObject({
    fields: z.record(z.string(), z.looseObject({ type: z.string() })).exactOptional(),
    methods: z
      .record(z.string(), z.looseObject({ requestType: z.string(), responseType: z.string() }))
      .exactOptional(),
    nested: z.record(z.string(), nodeSchema).exactOptional(),
  }),
);

const typesIn = ({ fields = {}, methods = {}, nested = {} }: Node): readonly string[] => [
  ...Object.values(fields).map(({ type }) => type),
  ...Object.values(methods).flatMap(({ requestType, responseType }) => [requestType, responseType]),
  ...Object.values(nested).flatMap(typesIn),
];

/** The names in `types` that `roots` lead to, themselves included. */
const reachable = (types: Readonly<Record<string, Node>>, roots: readonly string[]): ReadonlySet<string> => {
  const found = new Set<string>();
  const open = [...roots];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    const node = types[name];
    if (!node || found.has(name)) continue;
    found.add(name);
    // A type is named from within its package, or in full; the last part is unique in this API.
    open.push(...typesIn(node).map((type) => type.slice(type.lastIndexOf('.') + 1)));
  }
  return found;
};

const PATH = ['google', 'cloud', 'compute'] as const;

/** `protos` with no other version than v1, and in it nothing that `services` do not reach. Throws on an unknown layout. */
export const pruneProtos = (protos: unknown, services: readonly string[]): unknown => {
  const root = structuredClone(nodeSchema.parse(protos));
  let compute: Node = root;
  for (const name of PATH) {
    const next = compute.nested?.[name];
    if (!next) throw new Error(`the Compute client's protos have no ${PATH.join('.')}`);
    compute = next;
  }
  const v1 = compute.nested?.['v1'];
  const types = v1?.nested;
  if (!v1 || !types) throw new Error("the Compute client's protos have no v1");
  for (const service of services) {
    if (!types[service]?.methods) throw new Error(`the Compute client's protos have no service ${service}`);
  }
  const kept = reachable(types, services);
  v1.nested = Object.fromEntries(Object.entries(types).filter(([name]) => kept.has(name)));
  compute.nested = { v1 };
  return root;
};

/** Replaces the Compute client's protos.json in a bundle. */
export const prunedComputeProtos = (services: readonly string[]): Plugin => ({
  name: 'pruned-compute-protos',
  setup: (build) => {
    // The filter runs as a Go expression, which knows no `u` flag.
    build.onLoad({ filter: /@google-cloud\/compute\/build\/protos\/protos\.json$/ }, async ({ path }) => {
      const protos: unknown = JSON.parse(await readFile(path, 'utf8'));
      return { contents: JSON.stringify(pruneProtos(protos, services)), loader: 'json' };
    });
  },
});
