import { randomUUID } from 'node:crypto';

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';

import { machineSpec, GCP_SPEC } from '#test/compute/builders.ts';
import { eventually } from '#test/compute/through-proxy.ts';

import { startCompute, type ComputeFixture } from './compute-fixture.ts';

const ZONE = 'europe-west1-b';
const jsonSchema = z.record(z.string(), z.unknown());

interface Reply {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

const call = async (method: string, url: string, body?: unknown): Promise<Reply> => {
  const response = await fetch(url, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: jsonSchema.parse(await response.json()) };
};

const instance = (name: string, changes: Record<string, unknown> = {}): Record<string, unknown> => ({
  name,
  machineType: `zones/${ZONE}/machineTypes/e2-micro`,
  labels: { owner: 'test' },
  disks: [{ boot: true, autoDelete: true, initializeParams: { sourceImage: GCP_SPEC.image } }],
  networkInterfaces: [{ accessConfigs: [{ type: 'ONE_TO_ONE_NAT' }] }],
  ...changes,
});

describe('the Compute Engine stand-in', () => {
  let compute: ComputeFixture;
  let lastName = 0;

  const project = (path = ''): string =>
    `${compute.standIn.url}/compute/v1/projects/${compute.projectId}${path}`;
  const instances = (path = ''): string => project(`/zones/${ZONE}/instances${path}`);
  const control = (path: string): string => `${compute.standIn.url}/_control${path}`;
  const insert = (body: unknown, requestId?: string): Promise<Reply> =>
    call('POST', instances(requestId === undefined ? '' : `?requestId=${requestId}`), body);
  const freshName = (): string => {
    lastName += 1;
    return `vm-${lastName}`;
  };
  /** Waits as the API lets callers wait. */
  const finished = async (operation: Reply): Promise<Reply> =>
    call('POST', project(`/zones/${ZONE}/operations/${String(operation.body['name'])}/wait`));
  const madeInstance = async (changes: Record<string, unknown> = {}): Promise<string> => {
    const name = freshName();
    expect(await finished(await insert(instance(name, changes)))).toMatchObject({ body: { status: 'DONE' } });
    return name;
  };
  const listening = (name: string): Promise<{ host: string; port: number }> =>
    eventually(async () => {
      const view = compute.standIn.control.instances().find((one) => one.name === name);
      return view?.listening ? { host: view.address ?? '', port: view.port ?? 0 } : undefined;
    });

  beforeAll(async () => {
    compute = await startCompute({ longestPage: 3 });
  });
  afterEach(() => compute.standIn.control.clearFaults());
  afterAll(() => compute.stop());

  test('an instance goes through its states, with ids beyond 2^53 as strings', async () => {
    const name = freshName();
    // Long enough for a slow machine to see it under way.
    compute.standIn.control.addFault({ kind: 'slowOperation', ms: 3_000, namePrefix: name, count: 1 });
    const operation = await insert(instance(name));
    expect(operation).toMatchObject({
      status: 200,
      body: { kind: 'compute#operation', operationType: 'insert', status: 'PENDING', progress: 0 },
    });
    expect(Number(operation.body['targetId'])).toBeGreaterThan(2 ** 53);
    expect(await call('GET', instances(`/${name}`))).toMatchObject({
      body: { status: 'PROVISIONING', id: operation.body['targetId'], networkInterfaces: [{}] },
    });
    expect(await finished(operation)).toMatchObject({ body: { status: 'DONE', progress: 100 } });
    const running = await call('GET', instances(`/${name}`));
    expect(running.body).toMatchObject({ kind: 'compute#instance', status: 'RUNNING' });
    expect(JSON.stringify(running.body)).toMatch(/"natIP":"127\.\d+\.\d+\.\d+"/u);
    await finished(await call('DELETE', instances(`/${name}`)));
    expect(await call('GET', instances(`/${name}`))).toMatchObject({
      status: 404,
      body: {
        error: {
          code: 404,
          message: `The resource 'projects/${compute.projectId}/zones/${ZONE}/instances/${name}' was not found`,
          errors: [{ reason: 'notFound', domain: 'global' }],
        },
      },
    });
  });

  test('a request id that was seen gives the operation of the first time, also for a taken name', async () => {
    const requestId = randomUUID();
    const body = instance(freshName());
    const first = await insert(body, requestId);
    expect((await insert(body, requestId)).body['name']).toBe(first.body['name']);
    expect(await insert(body, randomUUID())).toMatchObject({
      status: 409,
      body: { error: { errors: [{ reason: 'alreadyExists' }] } },
    });
    expect(await insert(body, 'not-a-uuid')).toMatchObject({ status: 400 });
  });

  test.each([
    ['a name in capitals', { name: 'VM' }],
    ['a name of 64 characters', { name: 'a'.repeat(64) }],
    ['a machine type of another zone', { machineType: 'zones/us-central1-a/machineTypes/e2-micro' }],
    ['a label key in capitals', { labels: { Owner: 'x' } }],
    ['a label value with a dot', { labels: { owner: 'a.b' } }],
    ['a metadata value above 256 KiB', { metadata: { items: [{ key: 'a', value: 'x'.repeat(262_145) }] } }],
    ['no boot disk', { disks: [] }],
    ['no network', { networkInterfaces: [] }],
    ['a list where a text belongs', { description: [] }],
  ])('%s is refused', async (_, changes) => {
    expect(await insert(instance('vm', changes))).toMatchObject({
      status: 400,
      body: { error: { errors: [{ reason: 'invalid' }] } },
    });
  });

  test('what does not exist is not found: another project, an image, a path', async () => {
    const other = project().replace(compute.projectId, 'other');
    expect(await call('GET', other)).toMatchObject({ status: 404 });
    const sourceImage = 'projects/ubuntu-os-cloud/global/images/family/windows';
    const disks = [{ boot: true, initializeParams: { sourceImage } }];
    expect(await insert(instance('vm', { disks }))).toMatchObject({ status: 404 });
    expect(await call('GET', project('/zones/mars1-a/instances'))).toMatchObject({ status: 400 });
    expect(await call('GET', project('/planets'))).toMatchObject({ status: 404 });
    const response = await fetch(instances(), { method: 'POST', body: '{' });
    expect(response.status).toBe(400);
  });

  test('a boot disk that stays blocks its name', async () => {
    const disks = [{ boot: true, autoDelete: false, initializeParams: { sourceImage: GCP_SPEC.image } }];
    const name = await madeInstance({ disks });
    await finished(await call('DELETE', instances(`/${name}`)));
    expect(await insert(instance(name))).toMatchObject({ status: 409 });
    await finished(await call('DELETE', project(`/zones/${ZONE}/disks/${name}`)));
    expect(await insert(instance(name))).toMatchObject({ status: 200 });
  });

  test('labels change under their fingerprint only', async () => {
    const name = await madeInstance();
    const { labelFingerprint } = (await call('GET', instances(`/${name}`))).body;
    const change = (fingerprint: unknown): Promise<Reply> =>
      call('POST', instances(`/${name}/setLabels`), {
        labels: { owner: 'me' },
        labelFingerprint: fingerprint,
      });
    expect(await change('stale')).toMatchObject({ status: 412 });
    await finished(await change(labelFingerprint));
    expect((await call('GET', instances(`/${name}`))).body['labels']).toEqual({ owner: 'me' });
    expect(await change(labelFingerprint)).toMatchObject({ status: 412 });
  });

  test('pages follow each other, each zone on every page', async () => {
    const owner = freshName();
    const seven = Array.from({ length: 7 }, () =>
      madeInstance({ labels: { owner }, networkInterfaces: [{}] }),
    );
    await Promise.all(seven);
    const pageSchema = z.object({
      nextPageToken: z.string().optional(),
      items: z.record(z.string(), z.object({ instances: z.array(z.unknown()).optional() })),
    });
    const filter = encodeURIComponent(`labels.owner = "${owner}"`);
    const sizes: number[] = [];
    for (let token: string | undefined = ''; token !== undefined;) {
      const url = project(`/aggregated/instances?filter=${filter}&pageToken=${token}`);
      const page = pageSchema.parse((await call('GET', url)).body);
      expect(Object.keys(page.items)).toHaveLength(6);
      sizes.push(page.items[`zones/${ZONE}`]?.instances?.length ?? 0);
      token = page.nextPageToken;
    }
    expect(sizes).toEqual([3, 3, 1]);
    expect(await call('GET', project('/aggregated/instances?maxResults=501'))).toMatchObject({ status: 400 });
  });

  test('disks are listed in pages over all zones too, and a zone that is out of reach is said to be missing', async () => {
    const owner = freshName();
    const disks = [{ boot: true, initializeParams: { sourceImage: GCP_SPEC.image, labels: { owner } } }];
    await Promise.all(Array.from({ length: 4 }, () => madeInstance({ disks, networkInterfaces: [{}] })));
    const url = project(`/aggregated/disks?filter=${encodeURIComponent(`labels.owner = "${owner}"`)}`);
    const first = (await call('GET', url)).body;
    const second = (await call('GET', `${url}&pageToken=${String(first['nextPageToken'])}`)).body;
    const inZone = z.object({
      items: z.object({ [`zones/${ZONE}`]: z.object({ disks: z.array(z.unknown()) }) }),
    });
    expect(inZone.parse(first).items[`zones/${ZONE}`]?.disks).toHaveLength(3);
    expect(inZone.parse(second).items[`zones/${ZONE}`]?.disks).toMatchObject([
      { labels: { owner }, users: [expect.stringContaining('/instances/vm-')] },
    ]);
    expect(second['nextPageToken']).toBeUndefined();
    compute.standIn.control.addFault({ kind: 'unreachableZone', zone: ZONE });
    expect(await call('GET', url)).toMatchObject({ status: 503 });
    expect(await call('GET', `${url}&returnPartialSuccess=true`)).toMatchObject({
      status: 200,
      body: {
        unreachables: [`zones/${ZONE}`],
        items: { [`zones/${ZONE}`]: { warning: { code: 'UNREACHABLE' } } },
      },
    });
  });

  test('faults, calls and instances are at hand over HTTP', async () => {
    await call('DELETE', control('/calls'));
    const fault = { kind: 'status', statuses: [429, 503], method: 'instances.get', namePrefix: 'x-' };
    const { body: added } = await call('POST', control('/faults'), fault);
    expect(await call('GET', control('/faults'))).toMatchObject({
      body: { faults: [{ id: added['id'], fault, struck: 0 }] },
    });
    for (const status of [429, 503, 404]) {
      expect(await call('GET', instances('/x-1'))).toMatchObject({ status });
    }
    expect(await call('GET', control('/calls?method=instances.get&status=429'))).toMatchObject({
      body: { count: 1, calls: [{ name: 'x-1', zone: ZONE, httpMethod: 'GET', status: 429 }] },
    });
    expect(await call('POST', control('/faults'), { kind: 'earthquake' })).toMatchObject({ status: 400 });
    expect(await call('POST', control('/instances/none/preempt'))).toMatchObject({ status: 404 });
    expect(await call('GET', control('/nothing'))).toMatchObject({ status: 404 });

    const name = await madeInstance();
    const before = await listening(name);
    await call('POST', control(`/instances/${name}/restart`));
    const after = await listening(name);
    expect(after.host).not.toBe(before.host);
    await call('POST', control(`/instances/${name}/vanish`));
    expect(await call('GET', instances(`/${name}`))).toMatchObject({ status: 404 });
  });

  test('a machine name of the product is a name that it takes', async () => {
    const { name } = machineSpec('abcdefghijklmnop');
    expect(await insert(instance(name))).toMatchObject({ status: 200 });
  });
});
