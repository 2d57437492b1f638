import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';

import { gcloud } from '#test/google-apis/gcloud.ts';
import { startGoogleApis } from '#test/google-apis/stand-in.ts';

const PROJECT = 'my-project';

const start = async (...services: readonly string[]) => {
  const apis = await startGoogleApis({ projectId: PROJECT, pubsubHost: '127.0.0.1:1', latencyMs: 0 });
  onTestFinished(() => apis.stop());
  gcloud(apis.world, ['services', 'enable', ...services.map((name) => `${name}.googleapis.com`)]);
  const call = async (method: string, api: string, path: string, body?: object) => {
    const answer = await fetch(`${apis.environment[`GOOGLE_${api}_CUSTOM_ENDPOINT`]}${path}`, {
      method,
      headers: { 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const json: unknown = await answer.json();
    return { status: answer.status, body: json };
  };
  return { apis, call };
};

const metric = {
  name: 'granted',
  filter: 'x',
  metricDescriptor: { metricKind: 'DELTA', valueType: 'INT64' },
};

test('an API that is not enabled refuses everything', async () => {
  const { call } = await start();
  expect(await call('GET', 'LOGGING', `projects/${PROJECT}/metrics/granted`)).toMatchObject({
    status: 403,
    body: { error: { errors: [{ reason: 'accessNotConfigured' }] } },
  });
});

test('what exists is refused a second time, what is gone is not found', async () => {
  const { call } = await start('logging');
  const path = `projects/${PROJECT}/metrics`;
  const statuses = [];
  for (const [method, at, body] of [
    ['POST', path, metric],
    ['POST', path, metric],
    ['DELETE', `${path}/granted`],
    ['GET', `${path}/granted`],
  ] as const)
    statuses.push((await call(method, 'LOGGING', at, body)).status);
  expect(statuses).toEqual([200, 409, 200, 404]);
});

test('a field that the API does not have is refused by its name', async () => {
  const { call } = await start('logging');
  const refused = await call('POST', 'LOGGING', `projects/${PROJECT}/metrics`, { ...metric, colour: 'red' });
  expect(refused).toMatchObject({ status: 400 });
  expect(JSON.stringify(refused.body)).toContain('colour');
});

test('an operation is not done before somebody asks', async () => {
  const { call } = await start('firestore');
  const database = { locationId: 'europe-west1', type: 'FIRESTORE_NATIVE' };
  const made = await call('POST', 'FIRESTORE', `projects/${PROJECT}/databases?databaseId=one`, database);
  expect(made.body).not.toHaveProperty('done');
  const { name } = z.object({ name: z.string() }).parse(made.body);
  expect(await call('GET', 'FIRESTORE', name)).toMatchObject({ body: { done: true } });
});

test('a policy is not written over one that somebody else has changed, nor with members or roles that do not exist', async () => {
  const { call } = await start('cloudresourcemanager', 'iam');
  const write = (policy: object) =>
    call('POST', 'RESOURCE_MANAGER', `projects/${PROJECT}:setIamPolicy`, { policy });
  const nobody = `serviceAccount:nobody@${PROJECT}.iam.gserviceaccount.com`;
  const viewers = { role: 'roles/viewer', members: ['group:a@example.com'] };
  const statuses = [
    await write({ bindings: [viewers] }),
    await write({ bindings: [], etag: 'of-before' }),
    await write({ bindings: [{ ...viewers, members: [nobody] }] }),
    await write({ bindings: [{ ...viewers, role: `projects/${PROJECT}/roles/none` }] }),
    await write({ bindings: [{ ...viewers, condition: { expression: 'true' } }] }),
  ].map(({ status }) => status);
  expect(statuses).toEqual([200, 409, 400, 400, 400]);
});

test('a network that others are in is not deleted', async () => {
  const { call } = await start('compute');
  const network = { name: 'one', autoCreateSubnetworks: false };
  await call('POST', 'COMPUTE', `projects/${PROJECT}/global/networks`, network);
  const router = { name: 'r', network: `projects/${PROJECT}/global/networks/one` };
  await call('POST', 'COMPUTE', `projects/${PROJECT}/regions/europe-west1/routers`, router);
  expect(await call('DELETE', 'COMPUTE', `projects/${PROJECT}/global/networks/one`)).toMatchObject({
    status: 400,
    body: { error: { errors: [{ reason: 'resourceInUseByAnotherResource' }] } },
  });
});
