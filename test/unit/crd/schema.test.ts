import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { CONDITION_REASONS } from '#shared/domain/conditions.ts';
import { DEFAULT_HEALTH_CHECK } from '#shared/domain/proxy.ts';
import { CRD_FILE, parseCrd, type Schema } from '#test/tools/generate-types.ts';

const root = parseCrd(await readFile(CRD_FILE, 'utf8')).spec.versions[0].schema.openAPIV3Schema;
const spec = root.properties?.['spec'] ?? {};
const status = root.properties?.['status'] ?? {};

const walk = (schema: Schema, path: string): [string, Schema][] => [
  [path, schema],
  ...Object.entries(schema.properties ?? {}).flatMap(([key, child]) => walk(child, `${path}.${key}`)),
  ...(schema.items ? walk(schema.items, `${path}[]`) : []),
  ...(schema.additionalProperties ? walk(schema.additionalProperties, `${path}{}`) : []),
];

const FIELDS = [...walk(spec, 'spec'), ...walk(status, 'status')];

const BOUNDS: Record<NonNullable<Schema['type']>, (schema: Schema) => boolean> = {
  string: (schema) => schema.enum !== undefined || schema['maxLength'] !== undefined,
  array: (schema) => schema['maxItems'] !== undefined,
  integer: (schema) =>
    schema['minimum'] !== undefined && (schema['maximum'] !== undefined || schema['format'] === 'int64'),
  object: (schema) => schema.properties !== undefined || schema['maxProperties'] !== undefined,
  boolean: () => true,
};

const bounded = (schema: Schema): boolean => {
  if (schema['x-kubernetes-int-or-string']) return schema['maxLength'] !== undefined;
  return schema.type !== undefined && BOUNDS[schema.type](schema);
};

describe('the schema of a Proxy', () => {
  test('has fields to look at', () => {
    expect(FIELDS.length).toBeGreaterThan(60);
  });

  test('describes every field, for kubectl explain', () => {
    const { metadata, ...rest } = root.properties ?? {};
    const bare = [root, ...Object.values(rest), ...FIELDS.map(([, schema]) => schema)];
    expect(bare.filter(({ description }) => !description)).toEqual([]);
    // The API server refuses a CRD that says anything about metadata.
    expect(metadata).toEqual({ type: 'object' });
  });

  test('bounds every string, list, map and number, so that rules stay within their cost (row 60)', () => {
    expect(FIELDS.filter(([, schema]) => !bounded(schema)).map(([path]) => path)).toEqual([]);
  });

  test('has no default on a field by which the providers are told apart', () => {
    const union = ['provider', 'endpoint', 'gcp', 'kubernetes', 'port', 'revision', 'cloudInit'];
    const found = union.map((key) => [key, spec.properties?.[key]?.type, spec.properties?.[key]?.default]);
    expect(found.map(([key, type, preset]) => [key, type !== undefined, preset])).toEqual(
      union.map((key) => [key, true, undefined]),
    );
  });

  test('has the defaults of the health check that the domain knows', () => {
    const defaults = Object.entries(spec.properties?.['healthCheck']?.properties ?? {}).map(
      ([key, schema]) => [key, schema.default],
    );
    expect(Object.fromEntries(defaults)).toEqual(DEFAULT_HEALTH_CHECK);
  });

  test('explains every type of condition that is written', () => {
    const explained = status.properties?.['conditions']?.description ?? '';
    expect(Object.keys(CONDITION_REASONS).filter((type) => !explained.includes(`${type}:`))).toEqual([]);
  });
});
