/** A connection whose client library is loaded by the first request. */

import { SystemError } from '#shared/app/errors.ts';
import { lazily } from '#shared/app/lazily.ts';

import type { ClusterOptions } from './configuration.ts';
import type { Connection } from './connection.ts';

const load = async (options: ClusterOptions, userAgent: string): Promise<Connection> => {
  try {
    const { openConnection } = await import('./connection.ts');
    return openConnection(options, userAgent);
  } catch (cause) {
    if (cause instanceof SystemError) throw cause;
    throw new SystemError('Transient', 'Kubernetes: the client could not be loaded', { cause });
  }
};

/**
 * As `openConnection`, but a configuration that can never work is told by each request (`NotConfigured`). One that finds the
 * library not loadable throws `Transient`, and the next one tries again.
 */
export const lazyConnection = (options: ClusterOptions, userAgent: string): Connection => {
  const connection = lazily(() => load(options, userAgent));
  return {
    send: async (request) => (await connection.get()).send(request),
    stream: async (request) => (await connection.get()).stream(request),
    close: async () => (await connection.opened())?.close(),
  };
};
