/** Whether every scope is in touch with the API server. */

import type { Clock } from '#shared/app/clock.ts';
import { problem, type HttpHandler } from '#shared/app/http.ts';

export interface Liveness {
  progress(scope: string): void;
  /** False when some scope had neither a watch event, a closed watch nor a list for too long. */
  live(): boolean;
  /** True once every scope was listed. */
  ready(): boolean;
}

export const makeLiveness = (scopes: readonly string[], staleMs: number, clock: Clock): Liveness => {
  const begunAt = clock.monotonic();
  const progressAt = new Map<string, number>();
  return {
    progress: (scope) => progressAt.set(scope, clock.monotonic()),
    live: () => scopes.every((scope) => clock.monotonic() - (progressAt.get(scope) ?? begunAt) < staleMs),
    ready: () => scopes.every((scope) => progressAt.has(scope)),
  };
};

/** `GET /live` and `GET /ready`. */
export const livenessHandler =
  (liveness: Pick<Liveness, 'live' | 'ready'>): HttpHandler =>
  ({ method, path }) => {
    const checks = new Map([
      ['/live', liveness.live],
      ['/ready', liveness.ready],
    ]);
    const check = checks.get(path);
    if (!check) return Promise.resolve(problem(404, 'NotFound', 'There is /live and /ready.'));
    if (method !== 'GET' && method !== 'HEAD') {
      return Promise.resolve(problem(405, 'MethodNotAllowed', 'Use GET.', {}, { allow: 'GET, HEAD' }));
    }
    return Promise.resolve(
      check()
        ? { status: 200, body: { status: 'ok' } }
        : problem(503, 'Unavailable', 'The API server was not reached for too long.'),
    );
  };
