/** Events on Proxies: what `kubectl describe` shows at the end. */

import { createHash } from 'node:crypto';

import { z } from 'zod';

import type { Clock } from '#shared/app/clock.ts';

import type { Connection } from './connection.ts';
import { errorOfReply } from './failure.ts';
import { PROXY_RESOURCE, type ProxyMetadata } from './proxy.gen.ts';
import { parseReply } from './schema.ts';

/** What an Event needs to know of the Proxy that it is about. */
export interface EventSubject {
  readonly metadata: Pick<ProxyMetadata, 'namespace' | 'name' | 'uid'>;
}

export interface ProxyEvent {
  readonly type: 'Normal' | 'Warning';
  /** CamelCase. */
  readonly reason: string;
  readonly message: string;
}

/** The API server's own bounds. */
const MAX_MESSAGE = 1024;
const MAX_NAME = 253;

/** The same happening has the same name, so that its repetition is one Event with a newer time. */
const eventName = ({ metadata }: EventSubject, event: ProxyEvent, component: string): string => {
  const identity = JSON.stringify([metadata.uid, component, event.type, event.reason, event.message]);
  const suffix = `.${createHash('sha256').update(identity).digest('hex').slice(0, 16)}`;
  return `${metadata.name.slice(0, MAX_NAME - suffix.length)}${suffix}`;
};

const involved = ({ metadata }: EventSubject) => ({
  apiVersion: `${PROXY_RESOURCE.group}/${PROXY_RESOURCE.version}`,
  kind: PROXY_RESOURCE.kind,
  namespace: metadata.namespace,
  name: metadata.name,
  uid: metadata.uid,
});

const countSchema = z.object({
  count: z.number().optional(),
  metadata: z.object({ resourceVersion: z.string() }),
});

/** Nobody here may read Events, but an empty patch shows the one that is there. */
const countAgain = async (
  connection: Connection,
  path: string,
  name: string,
  reason: string,
  at: string,
): Promise<void> => {
  const what = `event ${reason}`;
  const there = await connection.send({ method: 'PATCH', path, body: {} });
  if (there.status >= 300) throw errorOfReply(what, there, name);
  const { count = 1, metadata } = parseReply(what, countSchema, there.text);
  const body = { metadata, lastTimestamp: at, count: count + 1 };
  const patched = await connection.send({ method: 'PATCH', path, body });
  // Somebody else told the same at the same moment.
  if (patched.status >= 300 && patched.status !== 409) throw errorOfReply(what, patched, name);
};

/** Creates the Event, or counts the one that says the same once more. */
export const recordEvent = async (
  connection: Connection,
  proxy: EventSubject,
  event: ProxyEvent,
  { component, clock }: { readonly component: string; readonly clock: Clock },
): Promise<void> => {
  const name = eventName(proxy, event, component);
  const at = new Date(clock.now()).toISOString().replace(/\.\d{3}Z$/, 'Z');
  const path = `/api/v1/namespaces/${encodeURIComponent(proxy.metadata.namespace)}/events`;
  const created = await connection.send({
    method: 'POST',
    path,
    body: {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name, namespace: proxy.metadata.namespace },
      involvedObject: involved(proxy),
      type: event.type,
      reason: event.reason,
      message: event.message.slice(0, MAX_MESSAGE),
      source: { component },
      reportingComponent: component,
      firstTimestamp: at,
      lastTimestamp: at,
      count: 1,
    },
  });
  if (created.status < 300) return;
  if (created.status !== 409) throw errorOfReply(`event ${event.reason}`, created);
  await countAgain(connection, `${path}/${encodeURIComponent(name)}`, name, event.reason, at);
};
