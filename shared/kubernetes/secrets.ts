/** Secrets, one by one and by name: no identity may list them. */

import { hasCode } from '#shared/app/errors.ts';

import type { Connection } from './connection.ts';
import { errorOfReply, saysAbsent } from './failure.ts';
import { parseReply, secretSchema } from './schema.ts';

export type SecretReading =
  | {
      readonly kind: 'found';
      readonly labels: Readonly<Record<string, string>>;
      readonly data: Readonly<Record<string, Uint8Array>>;
      readonly version: string;
    }
  | { readonly kind: 'missing' }
  /** The cluster forbids it: only a person can change that. */
  | { readonly kind: 'unreadable'; readonly message: string };

const bytesOf = (data: Readonly<Record<string, string>>): Readonly<Record<string, Uint8Array>> =>
  Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64')]));

export const readSecret = async (
  connection: Connection,
  namespace: string,
  name: string,
  signal?: AbortSignal,
): Promise<SecretReading> => {
  const what = `get of Secret ${namespace}/${name}`;
  const reply = await connection.send({
    method: 'GET',
    path: `/api/v1/namespaces/${encodeURIComponent(namespace)}/secrets/${encodeURIComponent(name)}`,
    ...(signal ? { signal } : {}),
  });
  if (saysAbsent(reply, name)) return { kind: 'missing' };
  if (reply.status !== 200) {
    const error = errorOfReply(what, reply, name);
    if (reply.status === 403 && hasCode(error, 'Unauthorised')) {
      return { kind: 'unreadable', message: error.provider?.message ?? error.message };
    }
    throw error;
  }
  const secret = parseReply(what, secretSchema, reply.text);
  return {
    kind: 'found',
    labels: secret.metadata.labels,
    data: bytesOf(secret.data),
    version: secret.metadata.resourceVersion,
  };
};
