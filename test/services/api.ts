/** Calls to a Kubernetes API server as it speaks on the wire, for set-up and tests: no client library in between. */

import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:https';

import { parseAllDocuments } from 'yaml';
import { z } from 'zod';

export interface ApiAddress {
  readonly server: string;
  /** PEM file of the authority that the server's certificate is checked against. */
  readonly caFile: string;
  readonly token: string;
}

export interface ApiAnswer {
  readonly status: number;
  /** Parsed JSON, or the text when it is none. */
  readonly body: unknown;
}

export interface ApiCall {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly body?: unknown;
  /** Default `application/json`; a PATCH has to say what kind of patch it is. */
  readonly contentType?: string;
  /** Default: whatever the server likes, which is JSON. */
  readonly accept?: string;
  readonly signal?: AbortSignal;
}

const parsed = (text: string): unknown => {
  try {
    const value: unknown = JSON.parse(text);
    return value;
  } catch {
    return text;
  }
};

/** One call; rejects only when there is no answer. */
export const callApi = (api: ApiAddress, path: string, call: ApiCall = {}): Promise<ApiAnswer> =>
  new Promise((resolve, reject) => {
    const body = call.body === undefined ? undefined : Buffer.from(JSON.stringify(call.body));
    const sent = request(
      new URL(path, api.server),
      {
        method: call.method ?? 'GET',
        agent: new Agent({ ca: readFileSync(api.caFile), keepAlive: false }),
        headers: {
          authorization: `Bearer ${api.token}`,
          'content-type': call.contentType ?? 'application/json',
          // Node sends none with a DELETE by itself, and then the body is not read.
          ...(body ? { 'content-length': body.length } : {}),
          ...(call.accept === undefined ? {} : { accept: call.accept }),
        },
        ...(call.signal ? { signal: call.signal } : {}),
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          text += chunk;
        });
        response.once('error', reject);
        response.once('end', () => resolve({ status: response.statusCode ?? 0, body: parsed(text) }));
      },
    );
    sent.once('error', reject);
    sent.end(body);
  });

export const manifestSchema = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string(), namespace: z.string().optional() }),
});

export type Manifest = z.infer<typeof manifestSchema>;

/** The objects in a YAML text of one or more documents; throws when one is no Kubernetes object. */
export const parseManifests = (text: string): readonly Manifest[] => {
  const values = parseAllDocuments(text).map((document) => z.json().parse(document.toJS()));
  return z.array(manifestSchema).parse(values.filter((value) => value !== null));
};

const resourcesSchema = z.object({
  resources: z.array(z.object({ name: z.string(), kind: z.string(), namespaced: z.boolean() })),
});

const refusal = (what: string, { status, body }: ApiAnswer): Error =>
  new Error(`${what}: ${status} ${typeof body === 'string' ? body : JSON.stringify(body)}`);

/** The path of an object, by the server's own list of kinds. */
export const objectPath = async (
  api: ApiAddress,
  { apiVersion, kind, metadata }: Manifest,
): Promise<string> => {
  const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const answer = await callApi(api, root);
  if (answer.status !== 200) throw refusal(`no ${apiVersion} to apply a ${kind} to`, answer);
  const { resources } = resourcesSchema.parse(answer.body);
  const resource = resources.find((entry) => entry.kind === kind && !entry.name.includes('/'));
  if (!resource) throw new Error(`the server knows no ${kind} in ${apiVersion}`);
  const scope = resource.namespaced ? `/namespaces/${metadata.namespace ?? 'default'}` : '';
  return `${root}${scope}/${resource.name}/${metadata.name}`;
};

/** Server-side apply of one object, conflicts won; rejects with the server's own words when it refuses. */
export const applyObject = async (api: ApiAddress, manifest: Manifest): Promise<unknown> => {
  const path = await objectPath(api, manifest);
  const answer = await callApi(api, `${path}?fieldManager=local-stack&force=true`, {
    method: 'PATCH',
    body: manifest,
    contentType: 'application/apply-patch+yaml',
  });
  if (answer.status >= 300) throw refusal(`${manifest.kind} ${manifest.metadata.name} was refused`, answer);
  return answer.body;
};
