/**
 * Writes the TypeScript types of the Proxy resource from its CRD. With `--check` it only compares, and exits 1 on a
 * difference. An argument names another file to write or compare.
 */

import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { compile, type JSONSchema } from 'json-schema-to-typescript';
import { parse } from 'yaml';
import { z } from 'zod';

export const CRD_FILE = fileURLToPath(new URL('../../crds/proxy.yaml', import.meta.url));
export const TYPES_FILE = fileURLToPath(new URL('../../shared/kubernetes/proxy.gen.ts', import.meta.url));

/** The part of structural OpenAPI that the CRD uses; anything else is refused, lest it be lost from the types. */
export interface Schema {
  type?: 'object' | 'array' | 'string' | 'integer' | 'boolean' | undefined;
  description?: string | undefined;
  properties?: Record<string, Schema> | undefined;
  additionalProperties?: Schema | undefined;
  items?: Schema | undefined;
  required?: string[] | undefined;
  enum?: string[] | undefined;
  default?: unknown;
  'x-kubernetes-int-or-string'?: boolean | undefined;
  [bound: string]: unknown;
}

const IGNORED = {
  format: z.string().optional(),
  pattern: z.string().optional(),
  minLength: z.number().optional(),
  maxLength: z.number().optional(),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
  minItems: z.number().optional(),
  maxItems: z.number().optional(),
  maxProperties: z.number().optional(),
  anyOf: z.array(z.strictObject({ type: z.enum(['integer', 'string']) })).optional(),
  'x-kubernetes-map-type': z.string().optional(),
  'x-kubernetes-list-type': z.string().optional(),
  'x-kubernetes-list-map-keys': z.array(z.string()).optional(),
  'x-kubernetes-validations': z.array(z.looseObject({ rule: z.string(), message: z.string() })).optional(),
};

const schema: z.ZodType<Schema> = z.lazy(() =>
  z.strictObject({
    type: z.enum(['object', 'array', 'string', 'integer', 'boolean']).optional(),
    description: z.string().optional(),
    properties: z.record(z.string(), schema).optional(),
    additionalProperties: schema.optional(),
    items: schema.optional(),
    required: z.array(z.string()).optional(),
    enum: z.array(z.string()).optional(),
    default: z.unknown().optional(),
    'x-kubernetes-int-or-string': z.boolean().optional(),
    ...IGNORED,
  }),
);

const crd = z.object({
  spec: z.object({
    group: z.string(),
    names: z.object({ kind: z.string(), plural: z.string() }),
    versions: z.tuple([z.object({ name: z.string(), schema: z.object({ openAPIV3Schema: schema }) })]),
  }),
});

export type Crd = z.infer<typeof crd>;

/** The CRD as far as types need it. Throws a ZodError that names the place of anything unknown. */
export const parseCrd = (yaml: string): Crd => crd.parse(parse(yaml));

const METADATA: JSONSchema = {
  title: 'ProxyMetadata',
  description: 'The part of metav1.ObjectMeta that is used here, as the API server returns it.',
  type: 'object',
  additionalProperties: false,
  required: ['name', 'namespace', 'uid', 'resourceVersion', 'generation', 'creationTimestamp'],
  properties: {
    name: { type: 'string' },
    namespace: { type: 'string' },
    uid: { type: 'string' },
    resourceVersion: { type: 'string' },
    generation: { type: 'integer' },
    creationTimestamp: { type: 'string', description: 'RFC 3339.' },
    deletionTimestamp: { type: 'string', description: 'RFC 3339; present once deletion was asked for.' },
    labels: { type: 'object', additionalProperties: { type: 'string' } },
    annotations: { type: 'object', additionalProperties: { type: 'string' } },
    finalizers: { type: 'array', items: { type: 'string' } },
  },
};

const pascal = (key: string): string => key.charAt(0).toUpperCase() + key.slice(1);
const singular = (name: string): string => name.replace(/s$/, '');

const describe = (node: Schema): string =>
  node.default === undefined
    ? (node.description ?? '')
    : `${node.description ?? ''}\n\nDefault: \`${JSON.stringify(node.default)}\`.`;

const convertObject = (node: Schema, name: string): JSONSchema => {
  if (!node.properties) {
    const values = node.additionalProperties;
    return { type: 'object', additionalProperties: values ? convert(values, singular(name)) : false };
  }
  const properties: Record<string, JSONSchema> = {};
  for (const [key, child] of Object.entries(node.properties)) {
    properties[key] = convert(child, `${name}${pascal(key)}`);
  }
  const required = node.required ?? [];
  return { title: name, type: 'object', additionalProperties: false, required, properties };
};

const convertShape = (node: Schema, name: string): JSONSchema => {
  if (node['x-kubernetes-int-or-string']) return { type: ['integer', 'string'] };
  if (node.enum) return { type: 'string', enum: node.enum };
  if (node.type === 'object') return convertObject(node, name);
  if (node.type === 'array' && node.items)
    return { type: 'array', items: convert(node.items, singular(name)) };
  if (node.type && node.type !== 'array') return { type: node.type };
  throw new TypeError(`${name}: a schema without a type`);
};

const convert = (node: Schema, name: string): JSONSchema => ({
  ...convertShape(node, name),
  description: describe(node),
});

const root = ({ spec }: Crd): JSONSchema => {
  const { kind } = spec.names;
  const [version] = spec.versions;
  const { spec: wanted, status } = version.schema.openAPIV3Schema.properties ?? {};
  if (!wanted || !status) throw new TypeError(`${kind}: the schema needs spec and status`);
  return {
    title: kind,
    description: version.schema.openAPIV3Schema.description ?? '',
    type: 'object',
    additionalProperties: false,
    required: ['apiVersion', 'kind', 'metadata', 'spec'],
    properties: {
      apiVersion: { type: 'string', enum: [`${spec.group}/${version.name}`] },
      kind: { type: 'string', enum: [kind] },
      metadata: METADATA,
      spec: convert(wanted, `${kind}Spec`),
      status: convert(status, `${kind}Status`),
    },
  };
};

const banner = ({ spec }: Crd): string => `/**
 * Generated from crds/proxy.yaml by \`npm run generate\`. Do not edit.
 *
 * A field with a default is there whenever the object was read from an API server that has this very CRD; it is optional
 * here because a manifest may leave it out, and a cluster may still have an older CRD.
 */

export const PROXY_RESOURCE = {
  group: '${spec.group}',
  version: '${spec.versions[0].name}',
  kind: '${spec.names.kind}',
  plural: '${spec.names.plural}',
} as const;
`;

/** Everything is read-only, as in the domain; the compiler has no option for it. Comment lines start with a star and stay. */
const readonly = (types: string): string =>
  types
    .replace(/^( +)(\w+\??: |\[k: string\]: )/gm, '$1readonly $2')
    .replace(/: (\w+)\[\];$/gm, ': readonly $1[];');

/** The text of the generated file for a CRD in YAML. Throws on a schema that it does not understand. */
export const generateTypes = async (yaml: string): Promise<string> => {
  const parsed = parseCrd(yaml);
  const types = await compile(root(parsed), parsed.spec.names.kind, {
    bannerComment: '',
    ignoreMinAndMaxItems: true,
    style: { singleQuote: true, printWidth: 110, trailingComma: 'all', bracketSpacing: true },
  });
  return `${banner(parsed)}\n${readonly(types.trimStart())}`;
};

/** The command: writes `file`, or only compares it. Resolves with the exit code; a difference is told to `complain`. */
export const run = async (
  check: boolean,
  file: string,
  complain: (text: string) => unknown,
): Promise<number> => {
  const wanted = await generateTypes(await readFile(CRD_FILE, 'utf8'));
  if (!check) {
    await writeFile(file, wanted);
    return 0;
  }
  const found = await readFile(file, 'utf8').catch(() => '');
  if (found === wanted) return 0;
  complain(`${file} does not match crds/proxy.yaml: run \`npm run generate\`.\n`);
  return 1;
};

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    options: { check: { type: 'boolean', default: false } },
    allowPositionals: true,
  });
  process.exitCode = await run(values.check, positionals[0] ?? TYPES_FILE, (text) =>
    process.stderr.write(text),
  );
}
