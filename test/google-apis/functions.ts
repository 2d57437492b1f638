/** Cloud Functions, the Cloud Run services under them, and what calls them: jobs of Cloud Scheduler. */

import { z } from 'zod';

import { invalid, notFound } from './errors.ts';
import { collectionRoutes, type Change } from './collection.ts';
import { policyRoutes } from './policies.ts';
import { functionSchema, jobSchema } from './schemas.ts';
import { route, type Answer, type Route } from './routes.ts';
import type { Resource, World } from './world.ts';

const object = z.record(z.string(), z.unknown());

const source = z.object({
  source: z.object({ storageSource: z.object({ bucket: z.string(), object: z.string() }) }),
  serviceAccount: z.string(),
  dockerRepository: z.string(),
});

/** A build finds its source, and what it builds with. */
const requireParts = (world: World, build: Resource, service: Resource): void => {
  const { source: from, serviceAccount, dockerRepository } = source.parse(build);
  const { bucket, object: name } = from.storageSource;
  const keys = [
    `storage/b/${bucket}/o/${name}`,
    `iam/${serviceAccount}`,
    `iam/projects/${world.projectId}/serviceAccounts/${String(service['serviceAccountEmail'])}`,
    `artifactregistry/${dockerRepository}`,
  ];
  for (const key of keys) if (!world.resources.has(key)) throw invalid(`There is no ${key}.`);
};

const hostOf = (id: string, region: string): string => `${id}-abcdefghij-${region}.a.run.app`;

const complete = ({ world, name, id, body, before }: Change): Resource => {
  const build = object.parse(body['buildConfig']);
  const service = object.parse(body['serviceConfig']);
  requireParts(world, build, service);
  const region = name.split('/')[3] ?? '';
  const run = `projects/${world.projectId}/locations/${region}/services/${id}`;
  world.resources.set(`run/${run}`, { name: run });
  return {
    ...body,
    name,
    environment: 'GEN_2',
    state: 'ACTIVE',
    url: `https://${region}-${world.projectId}.cloudfunctions.net/${id}`,
    createTime: before?.['createTime'] ?? '2026-01-01T00:00:00Z',
    updateTime: `2026-01-01T00:00:00.${world.next()}Z`,
    buildConfig: {
      ...build,
      build: `projects/${world.projectNumber}/locations/${region}/builds/${world.next()}`,
    },
    serviceConfig: {
      ...service,
      service: run,
      uri: `https://${hostOf(id, region)}`,
      revision: `${id}-${world.next()}`,
    },
  };
};

const removeService = (world: World, name: string): void => {
  const key = `run/${name.replace('/functions/', '/services/')}`;
  world.resources.delete(key);
  world.policies.delete(key);
};

const parentOf = (name: string): string => name.split('/').slice(0, 4).join('/');

const JOBS = 'cloudscheduler/v1/projects/{project}/locations/{location}/jobs';

const RETRIES = {
  maxRetryDuration: '0s',
  minBackoffDuration: '5s',
  maxBackoffDuration: '3600s',
  maxDoublings: 5,
};

/** Pauses a job, or lets it run on. */
const setState =
  (state: string): Answer =>
  (world, { path }) => {
    const key = path.replace('/v1', '').replace(/:\w+$/, '');
    const job = world.resources.get(key);
    if (!job) throw notFound(key);
    const after = { ...job, state };
    world.resources.set(key, after);
    return after;
  };

export const functionRoutes: readonly Route[] = [
  ...collectionRoutes({
    path: 'cloudfunctions/v2/projects/{project}/locations/{location}/functions',
    plural: 'functions',
    schema: functionSchema,
    idOf: ({ query }) => query.get('functionId') ?? '',
    complete,
    release: removeService,
    operations: (name) => `${parentOf(name)}/operations/`,
  }),
  ...policyRoutes('run/v2', 'projects/{project}/locations/{location}/services/{service}'),
  ...collectionRoutes({
    path: JOBS,
    plural: 'jobs',
    schema: jobSchema,
    idOf: (_request, body) => String(body['name']).split('/').at(-1) ?? '',
    complete: ({ body, name }) => ({
      ...body,
      name,
      retryConfig: { ...RETRIES, ...z.record(z.string(), z.unknown()).catch({}).parse(body['retryConfig']) },
      state: 'ENABLED',
      userUpdateTime: '2026-01-01T00:00:00Z',
    }),
  }),
  route(`POST ${JOBS}/{job}:resume`, setState('ENABLED')),
  route(`POST ${JOBS}/{job}:pause`, setState('PAUSED')),
];
