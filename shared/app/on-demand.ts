/** A function whose start loads next to nothing: the first request that needs its application loads that. */

import { SystemError } from './errors.ts';
import type { HttpHandler } from './http.ts';
import type { Lazy } from './lazily.ts';

/** What answers requests, with whatever it opened for that. */
export interface Application {
  readonly handler: HttpHandler;
  close(): Promise<unknown>;
}

const load = async (application: Lazy<Application>): Promise<Application> => {
  try {
    return await application.get();
  } catch (cause) {
    if (cause instanceof SystemError) throw cause;
    throw new SystemError('Transient', 'The function could not be loaded', { cause });
  }
};

/**
 * Answers `GET /health` by itself, everything else from the application. Throws `Transient` for a request that finds it
 * not loadable; the next one tries again.
 */
export const onDemand =
  (application: Lazy<Application>): HttpHandler =>
  async (request) => {
    if (request.method === 'GET' && request.path === '/health') {
      return { status: 200, headers: { 'cache-control': 'no-store' }, body: { status: 'ok' } };
    }
    const { handler } = await load(application);
    return handler(request);
  };

/** Closes what was opened, at most once; to be called when the platform ends the process. */
export const closeOpened = async (application: Lazy<Application>): Promise<void> => {
  const opened = await application.opened();
  await opened?.close();
};
