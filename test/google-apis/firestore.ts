/** Firestore's administration: databases, composite indexes, and exceptions of single fields. */

import { z } from 'zod';

import { ApiError, notFound } from './errors.ts';
import { collectionRoutes, known, type Change } from './collection.ts';
import { begin, longRunning } from './operations.ts';
import { databaseSchema, fieldSchema, indexSchema } from './schemas.ts';
import { route, type ApiRequest, type Route } from './routes.ts';
import type { Resource, World } from './world.ts';

const DATABASES = 'firestore/v1/projects/{project}/databases';

const operationsOf = (name: string): string => `${name.split('/').slice(0, 4).join('/')}/operations/`;

const completeDatabase = ({ world, name, body, before }: Change): Resource => ({
  ...before,
  concurrencyMode: 'PESSIMISTIC',
  appEngineIntegrationMode: 'DISABLED',
  pointInTimeRecoveryEnablement: 'POINT_IN_TIME_RECOVERY_DISABLED',
  deleteProtectionState: 'DELETE_PROTECTION_DISABLED',
  databaseEdition: 'STANDARD',
  versionRetentionPeriod: '3600s',
  ...body,
  name,
  uid: before?.['uid'] ?? `uid-${world.next()}`,
  etag: `e${world.next()}`,
});

const isProtected = (_world: World, name: string, database: Resource): void => {
  if (database['deleteProtectionState'] === 'DELETE_PROTECTION_ENABLED')
    throw new ApiError(
      400,
      'failedPrecondition',
      'FAILED_PRECONDITION',
      `${name} is protected from deletion.`,
    );
};

const completeIndex = ({ world, name, body }: Change): Resource => {
  const fields = z.array(z.record(z.string(), z.unknown())).parse(body['fields']);
  requireDatabase(world, name);
  return {
    ...body,
    name,
    apiScope: 'ANY_API',
    density: 'SPARSE_ALL',
    state: 'READY',
    // The name of the document is the last field of every index.
    fields: [...fields, { fieldPath: '__name__', order: 'ASCENDING' }],
  };
};

const requireDatabase = (world: World, name: string): void => {
  const database = name.split('/').slice(0, 4).join('/');
  if (!world.resources.has(`firestore/${database}`)) throw notFound(database);
};

const FIELD = `${DATABASES}/{database}/collectionGroups/{collection}/fields/{field}`;

const fieldName = ({ path }: ApiRequest): string => decodeURIComponent(path.replace('firestore/v1/', ''));

/** What a field has that nobody said anything about. */
const usualField = (name: string): Resource => ({
  name,
  indexConfig: {
    usesAncestorConfig: true,
    ancestorField: `${name.split('/').slice(0, 4).join('/')}/collectionGroups/__default__/fields/*`,
    indexes: [],
  },
});

const updateField = (world: World, request: ApiRequest): Resource => {
  const name = fieldName(request);
  requireDatabase(world, name);
  const body: Resource = known(fieldSchema, request.body);
  const mask = request.query.get('updateMask')?.split(',') ?? Object.keys(body);
  const before = world.resources.get(`firestore/${name}`) ?? usualField(name);
  const after: Record<string, unknown> = { ...before };
  for (const field of mask) {
    const value = body[field];
    if (field === 'indexConfig') after[field] = value ?? usualField(name)['indexConfig'];
    else if (value === undefined || value === null) delete after[field];
    else if (field === 'ttlConfig')
      after[field] = { state: 'ACTIVE', ...z.record(z.string(), z.unknown()).parse(value) };
  }
  const finish = (): Resource => {
    const isUsual = JSON.stringify(after) === JSON.stringify(usualField(name));
    if (isUsual) world.resources.delete(`firestore/${name}`);
    else world.resources.set(`firestore/${name}`, after);
    return after;
  };
  return longRunning(begin(world, { under: operationsOf(name), kind: 'update', target: name, finish }));
};

export const firestoreRoutes: readonly Route[] = [
  ...collectionRoutes({
    path: DATABASES,
    plural: 'databases',
    schema: databaseSchema,
    idOf: ({ query }) => query.get('databaseId') ?? '',
    complete: completeDatabase,
    release: isProtected,
    operations: operationsOf,
    // Nobody asks for the end of this.
    deletesAtOnce: true,
  }),
  ...collectionRoutes({
    path: `${DATABASES}/{database}/collectionGroups/{collection}/indexes`,
    plural: 'indexes',
    schema: indexSchema,
    idOf: (_request, _body, world) => `CICAgO${world.next()}`,
    complete: completeIndex,
    operations: operationsOf,
    update: 'never',
  }),
  route(`GET ${FIELD}`, (world, request) => {
    const name = fieldName(request);
    requireDatabase(world, name);
    return world.resources.get(`firestore/${name}`) ?? usualField(name);
  }),
  route(`PATCH ${FIELD}`, updateField),
];
