/**
 * Parts of the client libraries that no function ever uses, but that every start would read: generated code for messages
 * that gRPC itself encodes from their description, clients of other services, other languages. In a bundle, others stand in
 * for them, which say so when they are called after all.
 */

import { createRequire } from 'node:module';
import { dirname } from 'node:path';

import type { Plugin } from 'esbuild';

/** Contents of a module, or the names of exports that throw. */
type Replacement = string | readonly string[];

const throwing = (file: string, names: readonly string[]): string =>
  names
    .map(
      (name) =>
        `exports.${name} = function ${name}() { throw new Error('${name} of ${file} is not in this bundle'); };`,
    )
    .join('\n');

const NOTHING = 'module.exports = {};';
/** A file that is read only where Node.js lacks something that ours has. */
const NEVER = `throw new Error('a substitute for what every Node.js has is not in this bundle');`;
/** The client of a second service that a client makes with itself, and only closes. */
const companion = (name: string): string =>
  `exports.${name} = class { initialize() { return Promise.resolve(); } close() { return Promise.resolve(); } };`;
/** A client that is asked for its scopes, and never made. */
const unmade = (name: string): string =>
  `exports.${name} = class ${name} { static scopes = []; constructor() { throw new Error('${name} is not in this bundle'); } };`;

/** Messages are described to servers that offer gRPC's reflection; making those descriptions takes longer than all the rest. */
const NO_DESCRIPTORS = `
const protobuf = require('../..');
const descriptor = { $type: { toObject: () => ({}) }, file: [] };
for (const kind of [protobuf.Root, protobuf.Type, protobuf.Enum]) kind.prototype.toDescriptor = () => descriptor;
`;

const FIRESTORE_MESSAGES = `
const Value = { fromObject() { throw new Error('messages of Firestore are not in this bundle'); } };
module.exports = { google: { firestore: { v1: { Value } } } };
`;

/** What of the client of Kubernetes is used: its configuration, and how it sends; requests are made by hand. */
const KUBERNETES = `
export { KubeConfig } from './config.js';
export { HttpMethod, RequestContext } from './gen/http/http.js';
export { IsomorphicFetchHttpLibrary } from './gen/http/isomorphic-fetch.js';
`;

/** Asked for by that configuration, for clients that are not made. */
const KUBERNETES_CLIENTS = `
export const createConfiguration = () => { throw new Error('clients of Kubernetes are not in this bundle'); };
export class ServerConfiguration { constructor() { createConfiguration(); } }
`;

/** What of the HTTP client is used by that. */
const UNDICI = `
exports.Agent = require('./lib/dispatcher/agent');
exports.ProxyAgent = require('./lib/dispatcher/proxy-agent');
exports.fetch = require('./lib/web/fetch').fetch;
`;

/** By the end of their path below node_modules. */
export const LEFT_OUT: Readonly<Record<string, Replacement>> = {
  'google-gax/build/protos/iam_service.js': NOTHING,
  'google-gax/build/protos/locations.js': NOTHING,
  'google-gax/build/protos/operations.js': NOTHING,
  'google-gax/build/src/resumableUpload.js': [
    'ResumableUploadDescriptor',
    'ResumableUploadSession',
    'ResumableUploadState',
    'resumableUploadStub',
  ],
  'google-gax/build/src/locationService.js': companion('LocationsClient'),
  'google-gax/build/src/iamService.js': companion('IamClient'),
  '@grpc/grpc-js/build/src/server.js': ['Server'],
  '@grpc/grpc-js/build/src/server-interceptors.js': [
    'ResponderBuilder',
    'ServerInterceptingCall',
    'ServerListenerBuilder',
  ],
  'protobufjs/ext/descriptor/index.js': NO_DESCRIPTORS,
  '@google-cloud/firestore-api/build/protos/protos.js': FIRESTORE_MESSAGES,
  '@google-cloud/firestore-api/build/src/v1/firestore_admin_client.js': ['FirestoreAdminClient'],
  '@google-cloud/firestore/build/protos/firestore_v1_proto_api.js': FIRESTORE_MESSAGES,
  '@google-cloud/firestore/build/src/pipelines/index.js': [
    'Ordering',
    'Pipeline',
    'PipelineSnapshot',
    'PipelineSource',
    'and',
    'average',
    'count',
    'countAll',
    'field',
    'sum',
  ],
  '@google-cloud/firestore/build/src/pipelines/pipeline-util.js': `
exports.isString = (value) => typeof value === 'string';
${throwing('pipeline-util.js', ['reverseOrderings', 'toPipelineBooleanExpr', 'whereConditionsFromCursor'])}`,
  '@google-cloud/pubsub/build/protos/protos.js': NOTHING,
  '@google-cloud/pubsub-api/build/protos/protos.js': NOTHING,
  '@google-cloud/pubsub-api/build/src/v1/schema_service_client.js': unmade('SchemaServiceClient'),
  '@google-cloud/pubsub-api/build/src/v1/subscriber_client.js': unmade('SubscriberClient'),
  '@opentelemetry/core/build/src/index.js': 'exports.W3CTraceContextPropagator = class {};',
  '@kubernetes/client-node/dist/index.js': KUBERNETES,
  '@kubernetes/client-node/dist/gen/index.js': KUBERNETES_CLIENTS,
  'undici/index.js': UNDICI,
  'undici/lib/llhttp/llhttp-wasm.js': NEVER,
  'undici/lib/milo/no-simd.js': NEVER,
  'undici/lib/milo/simd.js': NEVER,
  'web-streams-polyfill/dist/ponyfill.es2018.js': NEVER,
  'zod/v4/classic/from-json-schema.js': `export const fromJSONSchema = () => { throw new Error('fromJSONSchema is not in this bundle'); };`,
  'zod/v4/locales/index.js': `export { default as en } from './en.js';`,
};

const GAX = createRequire(import.meta.url).resolve('google-gax');

/** The client of Compute Engine speaks REST only: the half of its core that does so is enough, and loads no gRPC. */
const REST_ONLY = `
module.exports = {
  ...require('./fallback.js'),
  loggingUtils: require('google-logging-utils'),
  decodeAnyProtosInArray: require('./util.js').decodeAnyProtosInArray,
};
`;

/** Where the client of Compute Engine asks for its core, it gets the half. */
export const restOnly = (): Plugin => ({
  name: 'rest-only',
  setup: (build) => {
    build.onResolve({ filter: /^google-gax$/ }, ({ importer }) =>
      importer.includes('/@google-cloud/compute/') ? { path: GAX, namespace: 'rest-only' } : undefined,
    );
    build.onLoad({ filter: /./, namespace: 'rest-only' }, () => ({
      contents: REST_ONLY,
      resolveDir: dirname(GAX),
    }));
  },
});

/** Puts the replacements in the place of the files. */
export const leftOut = (): Plugin => ({
  name: 'left-out',
  setup: (build) => {
    const names = Object.keys(LEFT_OUT).map((file) => file.replaceAll(/[.\\]/g, String.raw`\.`));
    // A Go expression, which knows no `u` flag.
    const filter = new RegExp(`/node_modules/(?:${names.join('|')})$`);
    build.onLoad({ filter }, ({ path }) => {
      const file = path.slice(path.lastIndexOf('/node_modules/') + '/node_modules/'.length);
      const replacement = LEFT_OUT[file];
      if (replacement === undefined) return undefined;
      const contents = typeof replacement === 'string' ? replacement : throwing(file, replacement);
      return { contents, loader: 'js' };
    });
  },
});
