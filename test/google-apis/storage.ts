/** Cloud Storage: buckets, and objects that come in one request; and the registry of images. */

import { createHash } from 'node:crypto';

import { z } from 'zod';

import { ApiError, alreadyExists, invalid, notFound } from './errors.ts';
import { collectionRoutes, known } from './collection.ts';
import { bucketSchema, repositorySchema } from './schemas.ts';
import { route, type ApiRequest, type Route } from './routes.ts';
import type { Resource, World } from './world.ts';

const bucketKey = (request: ApiRequest): string => `storage/b/${request.at('bucket')}`;
const objectKey = (request: ApiRequest): string => `${bucketKey(request)}/o/${request.at('object')}`;

const find = (world: World, key: string): Resource => {
  const found = world.resources.get(key);
  if (!found) throw notFound(key);
  return found;
};

const createBucket = (world: World, { body }: ApiRequest): Resource => {
  const given = known(bucketSchema, body);
  const { name } = given;
  const key = `storage/b/${name}`;
  if (world.resources.has(key)) throw alreadyExists(key);
  const bucket = {
    kind: 'storage#bucket',
    storageClass: 'STANDARD',
    ...given,
    id: name,
    selfLink: `https://www.googleapis.com/storage/v1/b/${name}`,
    projectNumber: world.projectNumber,
    location: given.location.toUpperCase(),
    locationType: 'region',
    metageneration: '1',
    timeCreated: '2026-01-01T00:00:00.000Z',
    updated: '2026-01-01T00:00:00.000Z',
    etag: 'CAE=',
    softDeletePolicy: { retentionDurationSeconds: '604800', effectiveTime: '2026-01-01T00:00:00.000Z' },
    rpo: 'DEFAULT',
  };
  world.resources.set(key, bucket);
  return bucket;
};

const objectsOf = (world: World, request: ApiRequest): Resource[] =>
  [...world.resources].filter(([key]) => key.startsWith(`${bucketKey(request)}/o/`)).map(([, one]) => one);

const removeBucket = (world: World, request: ApiRequest): Resource => {
  find(world, bucketKey(request));
  if (objectsOf(world, request).length > 0)
    throw new ApiError(
      409,
      'conflict',
      'FAILED_PRECONDITION',
      'The bucket you tried to delete is not empty.',
    );
  world.resources.delete(bucketKey(request));
  return {};
};

/** The two parts of a multipart upload: what the object is, and its bytes. */
const partsOf = ({ raw, headers }: ApiRequest): readonly [Resource, Buffer] => {
  const boundary = /boundary="?([^";]+)"?/.exec(String(headers['content-type']))?.[1];
  if (boundary === undefined) throw invalid('The upload is not multipart.');
  const separator = Buffer.from(`--${boundary}`);
  const parts: Buffer[] = [];
  let at = raw.indexOf(separator);
  for (;;) {
    const next = raw.indexOf(separator, at + separator.length);
    if (next === -1) break;
    const part = raw.subarray(at + separator.length, next);
    parts.push(part.subarray(part.indexOf('\r\n\r\n') + 4, -2));
    at = next;
  }
  const [about, content] = parts;
  if (!about || !content) throw invalid('The upload has not two parts.');
  return [z.record(z.string(), z.unknown()).parse(JSON.parse(about.toString('utf8'))), content];
};

const upload = (world: World, request: ApiRequest): Resource => {
  find(world, bucketKey(request));
  const [about, content] = partsOf(request);
  const name = z.string().parse(about['name'] ?? request.query.get('name'));
  const bucket = request.at('bucket');
  const generation = String(world.next());
  const object = {
    kind: 'storage#object',
    ...about,
    id: `${bucket}/${name}/${generation}`,
    name,
    bucket,
    generation,
    metageneration: '1',
    size: String(content.length),
    storageClass: 'STANDARD',
    md5Hash: createHash('md5').update(content).digest('base64'),
    crc32c: 'AAAAAA==',
    selfLink: `https://www.googleapis.com/storage/v1/b/${bucket}/o/${encodeURIComponent(name)}`,
    mediaLink: `https://www.googleapis.com/download/storage/v1/b/${bucket}/o/${encodeURIComponent(name)}`,
  };
  world.resources.set(`storage/b/${bucket}/o/${name}`, object);
  return object;
};

const REPOSITORIES = 'artifactregistry/v1/projects/{project}/locations/{location}/repositories';

export const storageRoutes: readonly Route[] = [
  route('POST storage/v1/b', createBucket),
  route('GET storage/v1/b/{bucket}', (world, request) => find(world, bucketKey(request))),
  route('PATCH storage/v1/b/{bucket}', (world, request) => {
    const bucket = { ...find(world, bucketKey(request)), ...request.body };
    world.resources.set(bucketKey(request), bucket);
    return bucket;
  }),
  route('DELETE storage/v1/b/{bucket}', removeBucket),
  route('POST upload/storage/v1/b/{bucket}/o', upload),
  route('GET storage/v1/b/{bucket}/o', (world, request) => ({ items: objectsOf(world, request) })),
  route('GET storage/v1/b/{bucket}/o/{object}', (world, request) => find(world, objectKey(request))),
  route('DELETE storage/v1/b/{bucket}/o/{object}', (world, request) => {
    find(world, objectKey(request));
    world.resources.delete(objectKey(request));
    return {};
  }),
  ...collectionRoutes({
    path: REPOSITORIES,
    plural: 'repositories',
    schema: repositorySchema,
    idOf: ({ query }) => query.get('repository_id') ?? query.get('repositoryId') ?? '',
    complete: ({ name, body }) => ({
      mode: 'STANDARD_REPOSITORY',
      ...body,
      name,
      createTime: '2026-01-01T00:00:00Z',
      updateTime: '2026-01-01T00:00:00Z',
    }),
    operations: (name) => `${name.split('/').slice(0, 4).join('/')}/operations/`,
  }),
];
