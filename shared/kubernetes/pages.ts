/** Complete lists: every page from the first to the last, or an error. */

import type { z } from 'zod';

import { SystemError } from '#shared/app/errors.ts';

import type { Connection } from './connection.ts';
import { errorOfReply } from './failure.ts';
import { parseReply } from './schema.ts';

/** Every namespace of the cluster. */
export const ALL_NAMESPACES = '*';

const PAGE_SIZE = '500';

/** What one kind of object is listed and watched by. */
export interface Collection<T> {
  /** In the plural, for messages. */
  readonly what: string;
  /** Path of the collection: one namespace's, or the cluster's for `*`. */
  path(namespace: string): string;
  readonly object: z.ZodType<T>;
  readonly page: z.ZodType<{
    readonly metadata: { readonly resourceVersion: string; readonly continue: string };
    readonly items: readonly T[];
  }>;
  /** Only objects with these labels. */
  readonly labelSelector?: string;
}

/** All objects of one namespace, or of `*`, at one moment. */
export interface Listing<T> {
  readonly items: readonly T[];
  /** Where a watch continues. */
  readonly resourceVersion: string;
}

/** Undefined when the list grew too old on the way and has to begin again. */
const allPages = async <T>(
  connection: Connection,
  collection: Collection<T>,
  namespace: string,
  signal?: AbortSignal,
): Promise<Listing<T> | undefined> => {
  const what = `list of ${collection.what} in ${namespace}`;
  const items: T[] = [];
  for (let token = ''; ;) {
    const reply = await connection.send({
      method: 'GET',
      path: collection.path(namespace),
      query: {
        limit: PAGE_SIZE,
        ...(collection.labelSelector === undefined ? {} : { labelSelector: collection.labelSelector }),
        ...(token ? { continue: token } : {}),
      },
      ...(signal ? { signal } : {}),
    });
    if (reply.status === 410 && token) return undefined;
    if (reply.status < 200 || reply.status >= 300) throw errorOfReply(what, reply);
    const page = parseReply(what, collection.page, reply.text);
    items.push(...page.items);
    token = page.metadata.continue;
    if (!token) return { items, resourceVersion: page.metadata.resourceVersion };
  }
};

/** Complete, or it throws. */
export const listAll = async <T>(
  connection: Connection,
  collection: Collection<T>,
  namespace: string,
  signal?: AbortSignal,
): Promise<Listing<T>> => {
  const listing =
    (await allPages(connection, collection, namespace, signal)) ??
    (await allPages(connection, collection, namespace, signal));
  if (listing) return listing;
  throw new SystemError(
    'Transient',
    `Kubernetes: the list of ${collection.what} in ${namespace} expired twice`,
  );
};
