/** The OpenAPI 3.1 document, made from the schemas that check the requests. */

import { z } from 'zod';

import { LEASE_STATES } from '#shared/domain/lease-standing.ts';

import { IDEMPOTENCY_KEY, outputSchemas, type InputSchemas } from './schemas.ts';

type Json = Readonly<Record<string, unknown>>;

const components = (): Json => {
  const registry = z.registry<{ id: string }>();
  const { lease, leaseSummary, proxies, leases, problem, status } = outputSchemas;
  registry.add(lease, { id: 'Lease' });
  registry.add(leaseSummary, { id: 'LeaseSummary' });
  registry.add(proxies.shape.items.element, { id: 'ProxyItem' });
  registry.add(proxies, { id: 'ProxyList' });
  registry.add(leases, { id: 'LeaseList' });
  registry.add(problem, { id: 'Problem' });
  registry.add(status, { id: 'Status' });
  const { schemas } = z.toJSONSchema(registry, { uri: (id) => `#/components/schemas/${id}` });
  return schemas;
};

/** Inline schema of something that a client sends. */
const inputSchema = (schema: z.ZodType): Json => {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io: 'input' });
  return rest;
};

const reference = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });

const REQUEST_ID: Json = {
  'X-Request-Id': {
    description: 'Of this request: the one that it came with, that of its trace, or a new one.',
    required: true,
    schema: { type: 'string', maxLength: 128 },
  },
};

const reply = (description: string, schema: string, headers: Json = {}): Json => ({
  description,
  headers: { ...REQUEST_ID, ...headers },
  content: { 'application/json': { schema: reference(schema) } },
});

const fault = (description: string, headers: Json = {}): Json => ({
  description,
  headers: { ...REQUEST_ID, ...headers },
  content: { 'application/problem+json': { schema: reference('Problem') } },
});

const RETRY_AFTER: Json = {
  'Retry-After': { description: 'Seconds.', required: true, schema: { type: 'integer', minimum: 1 } },
};

const COMMON: Json = {
  '400': fault('InvalidRequest, MalformedBody: `errors` names the fields.'),
  '500': fault('Internal'),
  '503': fault('Unavailable', RETRY_AFTER),
};
const WITH_BODY: Json = {
  ...COMMON,
  '413': fault('BodyTooLarge: more than 64 KiB.'),
  '415': fault('UnsupportedMediaType, UnsupportedEncoding'),
};
const ENDED = fault('LeaseEnded (`reason`: Released, Expired or Drained), EndpointGone, Unknown');

const queryParameter = (name: string, field: z.ZodType): Json => {
  const { description, ...schema } = inputSchema(field);
  const required = !field.safeParse(undefined).success;
  return { name, in: 'query', required, ...(description === undefined ? {} : { description }), schema };
};

const queryParameters = (shape: Readonly<Record<string, z.ZodType>>): readonly Json[] =>
  Object.entries(shape).map(([name, field]) => queryParameter(name, field));

const ID: Json = {
  name: 'id',
  in: 'path',
  required: true,
  description: '`leaseId` of the lease. It is a secret: whoever has it may use the lease.',
  schema: { type: 'string', maxLength: 128 },
};

const body = (schema: z.ZodType, required: boolean): Json => ({
  required,
  content: { 'application/json': { schema: inputSchema(schema) } },
});

const header = (name: string, description: string, schema: Json): Json => ({
  name,
  in: 'header',
  required: false,
  description,
  schema,
});

const ETAG: Json = {
  ETag: { description: 'Equal for equal answers.', required: true, schema: { type: 'string' } },
};

const proxiesPath = (input: InputSchemas): Json => ({
  '/v1/proxies': {
    get: {
      operationId: 'listProxies',
      summary: 'Proxies that can be leased now.',
      parameters: [
        ...queryParameters(input.listProxies.shape),
        header('If-None-Match', '`ETag` of an answer to the same call.', { type: 'string' }),
      ],
      responses: {
        ...COMMON,
        '200': reply('A page, by namespace and name.', 'ProxyList', ETAG),
        '304': {
          description: 'The page is the one that If-None-Match names.',
          headers: { ...REQUEST_ID, ...ETAG },
        },
      },
    },
  },
});

const leaseCollectionPath = (input: InputSchemas): Json => ({
  '/v1/leases': {
    post: {
      operationId: 'acquireLease',
      summary: 'Lease a proxy.',
      description:
        'The same Idempotency-Key by the same caller gives the same lease for 24 hours, and uses one slot.',
      parameters: [
        { name: 'Idempotency-Key', in: 'header', required: false, schema: inputSchema(IDEMPOTENCY_KEY) },
      ],
      requestBody: body(input.acquire, true),
      responses: {
        ...WITH_BODY,
        '201': reply('Granted. With the credentials of the proxy.', 'Lease'),
        '404': fault('NoMatch: no Proxy matches, whatever its health.'),
        '410': ENDED,
        '422': fault('IdempotencyKeyReused: the key was used for another request.'),
        '503': fault('NoneAvailable: `counts` says why; Unavailable', RETRY_AFTER),
      },
    },
    get: {
      operationId: 'listLeases',
      summary: "The caller's own live leases under a holder's name, without credentials.",
      parameters: queryParameters(input.listLeases.shape),
      responses: { ...COMMON, '200': reply('Leases, oldest first.', 'LeaseList') },
    },
  },
});

const leasePaths = (input: InputSchemas): Json => ({
  '/v1/leases/{id}': {
    parameters: [ID],
    get: {
      operationId: 'getLease',
      summary: 'A live lease, with the credentials of the proxy.',
      responses: { ...COMMON, '200': reply('The lease.', 'Lease'), '404': fault('NotFound') },
    },
    delete: {
      operationId: 'releaseLease',
      summary: 'Release a lease. A second time is no error.',
      responses: {
        ...COMMON,
        '204': { description: 'Released.', headers: REQUEST_ID },
        '404': fault('NotFound: not a lease id.'),
      },
    },
  },
  '/v1/leases/{id}/renew': {
    parameters: [ID],
    post: {
      operationId: 'renewLease',
      summary: 'Let a lease run for another ttlSeconds from now.',
      description: `\`state\` tells how its proxy stands: ${LEASE_STATES.join(', ')}.`,
      requestBody: body(input.renew, false),
      responses: { ...WITH_BODY, '200': reply('Renewed.', 'LeaseSummary'), '410': ENDED },
    },
  },
  '/v1/leases/{id}/report': {
    parameters: [ID],
    post: {
      operationId: 'reportLease',
      summary: 'Say how the proxy did. Failures ask for an early probe; the probe judges.',
      requestBody: body(input.report, true),
      responses: { ...WITH_BODY, '202': reply('Recorded.', 'Status'), '410': ENDED },
    },
  },
});

const operatorPaths = (): Json => ({
  '/openapi.json': {
    get: {
      operationId: 'getOpenApi',
      summary: 'This document.',
      responses: {
        '200': {
          description: 'OpenAPI 3.1.',
          headers: REQUEST_ID,
          content: { 'application/json': { schema: { type: 'object' } } },
        },
      },
    },
  },
  '/health': {
    get: {
      operationId: 'getHealth',
      summary: 'Whether the process answers.',
      responses: { '200': reply('It does.', 'Status') },
    },
  },
  '/ready': {
    get: {
      operationId: 'getReady',
      summary: 'Whether its databases answer.',
      responses: { '200': reply('They do.', 'Status'), '503': fault('Unavailable', RETRY_AFTER) },
    },
  },
});

export const openApiDocument = (input: InputSchemas): Json => ({
  openapi: '3.1.0',
  info: {
    title: 'Egress proxy discovery',
    version: '1.0.0',
    description:
      'Which egress proxies can be used now, and leases on them. Errors are RFC 9457 problem details with a stable `code`. Every request may carry an `X-Request-Id` of its own (up to 128 letters, digits and `_.:/+=@-`); every answer has one.',
    license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
  },
  paths: {
    ...proxiesPath(input),
    ...leaseCollectionPath(input),
    ...leasePaths(input),
    ...operatorPaths(),
  },
  components: { schemas: components() },
});
