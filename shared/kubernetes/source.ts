/** Objects of one kind, to be listed and then watched from there. */

import type { Connection } from './connection.ts';
import { listAll, type Collection, type Listing } from './pages.ts';
import { watchAll, type WatchEvent, type WatchOptions } from './watch.ts';

export interface ObjectSource<T> {
  /** One namespace, or `*`, with the version from which a watch continues. Complete, or it throws. */
  list(namespace: string, signal?: AbortSignal): Promise<Listing<T>>;
  /** Events until the watch ends; see `WatchOptions`. Throws a `SystemError` when it broke. */
  watch(options: WatchOptions): AsyncIterable<WatchEvent<T>>;
}

export const sourceOf = <T>(connection: Connection, collection: Collection<T>): ObjectSource<T> => ({
  list: (namespace, signal) => listAll(connection, collection, namespace, signal),
  watch: (options) => watchAll(connection, collection, options),
});
