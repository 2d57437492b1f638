import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  createProxy,
  EXTERNAL,
  GCP,
  KUBERNETES,
  merged,
  randomNamespace,
  refusal,
  stored,
} from './proxies.ts';

const LEAST = { external: EXTERNAL, gcp: GCP, kubernetes: KUBERNETES, nothing: {} };

const like = z.enum(['external', 'gcp', 'kubernetes', 'nothing']).transform((kind) => LEAST[kind]);
const patch = z.record(z.string(), z.unknown());
const cases = z
  .strictObject({
    accepted: z.array(z.strictObject({ title: z.string(), like, spec: patch })),
    refused: z.array(
      z.strictObject({ title: z.string(), like, spec: patch, field: z.string(), message: z.string() }),
    ),
  })
  .parse(parse(await readFile(new URL('proxy-specs.yaml', import.meta.url), 'utf8')));

const namespace = await randomNamespace();
const inline = (size: number): object => ({ ...GCP, cloudInit: { inline: 'x'.repeat(size) } });

describe('a Proxy is accepted (K4)', () => {
  test.each(cases.accepted)('$title', async ({ like: least, spec }) => {
    const wanted = merged(least, spec);
    expect(stored(await createProxy(namespace, wanted, { dryRun: true })).spec).toMatchObject(wanted);
  });

  test('gcp with 256 KiB of user-data (row 50)', async () => {
    stored(await createProxy(namespace, inline(256 * 1024), { dryRun: true }));
    const over = refusal(await createProxy(namespace, inline(256 * 1024 + 1), { dryRun: true }));
    expect(over).toEqual([expect.stringMatching(/^spec\.cloudInit\.inline: .*may not be more than 262144/)]);
  });

  test('under a name of 253 characters with dots (row 49)', async () => {
    const name = `${'a.b-c.'.repeat(42)}d`;
    expect(name).toHaveLength(253);
    expect(stored(await createProxy(namespace, GCP, { name, dryRun: true })).metadata.name).toBe(name);
  });
});

describe('a Proxy is refused, with one reason that says what to do (K4)', () => {
  test.each(cases.refused)('$title', async ({ like: least, spec, field, message }) => {
    const reasons = refusal(await createProxy(namespace, merged(least, spec), { dryRun: true }));
    expect(reasons).toEqual([expect.stringContaining(message)]);
    expect(reasons[0]?.split(': ')[0]).toBe(field);
  });

  test('a field that does not exist', async () => {
    const answer = await createProxy(namespace, { ...EXTERNAL, colour: 'red' }, { dryRun: true });
    expect(refusal(answer)).toEqual([expect.stringContaining('unknown field "spec.colour"')]);
  });

  test('no spec', async () => {
    expect(refusal(await createProxy(namespace, undefined, { dryRun: true }))).toEqual([
      'spec: Required value',
    ]);
  });
});

describe('defaults as read back', () => {
  const COMMON = {
    maxLeases: 1,
    cordoned: false,
    drainTimeoutSeconds: 300,
    healthCheck: {
      intervalSeconds: 60,
      timeoutSeconds: 5,
      failureThreshold: 3,
      successThreshold: 1,
      url: '',
    },
    updateStrategy: { type: 'RollingUpdate' },
  };
  const OF_GCP = { subnetwork: 'default', externalIP: 'Ephemeral', provisioningModel: 'Standard' };
  const SECRET = { cloudInit: { secretRef: { name: 's' } } };

  test.each<[string, object, object]>([
    ['External', EXTERNAL, { endpoint: { scheme: 'http' } }],
    ['gcp, whose port is left to the controller', GCP, { gcp: OF_GCP }],
    ['kubernetes', KUBERNETES, {}],
    ['user-data', merged(GCP, SECRET), { gcp: OF_GCP, cloudInit: { secretRef: { key: 'user-data' } } }],
  ])('%s', async (_, spec, added) => {
    const { spec: read } = stored(await createProxy(namespace, spec, { dryRun: true }));
    expect(read).toEqual(merged(merged(spec, COMMON), added));
  });
});
