import { describe, expect, it } from 'vitest';
import { z } from 'zod';

import { openApiDocument } from '../../../functions/discovery/openapi.ts';
import { inputSchemas } from '../../../functions/discovery/schemas.ts';
import { makeParts } from './parts.ts';

const documentSchema = z.object({
  openapi: z.literal('3.1.0'),
  paths: z.record(z.string(), z.record(z.string(), z.unknown())),
  components: z.object({ schemas: z.record(z.string(), z.unknown()) }),
});
const LIMITS = { minSeconds: 10, maxSeconds: 86_400, defaultSeconds: 300 };
const document = documentSchema.parse(openApiDocument(inputSchemas(LIMITS)));
const METHODS = ['get', 'post', 'delete', 'put', 'patch'];

const ask = (method: string, path: string) =>
  makeParts().handler({ method, path, query: new URLSearchParams(), headers: {}, body: new Uint8Array() });

describe('the OpenAPI document', () => {
  it('is what the function serves', async () => {
    const served = await ask('GET', '/openapi.json');
    expect(JSON.parse(JSON.stringify(served.body))).toMatchObject(JSON.parse(JSON.stringify(document)));
  });

  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    METHODS.map((method) => ({ path, method, documented: method in item })),
  );
  it.each(operations)('$method $path: documented is $documented, and so is the answer', async (operation) => {
    const { path, method, documented } = operation;
    const reply = await ask(method.toUpperCase(), path.replace('{id}', 'x'));
    expect(reply.status !== 405).toBe(documented);
  });

  it('refers only to schemas that it has', () => {
    const names = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)];
    expect(names.length).toBeGreaterThan(20);
    for (const [, name = ''] of names) expect(Object.keys(document.components.schemas)).toContain(name);
  });

  it('states the limits of a lease', () => {
    expect(JSON.stringify(document)).toContain('"minimum":10,"maximum":86400');
  });
});
