/** Whether a new process could do what this one cannot. */

import type { Clock } from '#shared/app/clock.ts';
import { SystemError } from '#shared/app/errors.ts';
import { problem, type HttpHandler } from '#shared/app/http.ts';

export interface Liveness {
  /** The API server served something of this scope. */
  progress(scope: string): void;
  /** An attempt ended with an error, and another will follow. */
  failed(scope: string, error: unknown): void;
  /**
   * False when some scope did nothing for too long, not even fail; and when the API server gave no answer at all, about any
   * scope, for longer than its outages last. A refusal is an answer: with it a new process would fare no better, and would be
   * started less and less often.
   */
  live(): boolean;
  /** True once every scope was listed. */
  ready(): boolean;
}

/** Milliseconds. */
export interface LivenessLimits {
  readonly idleMs: number;
  readonly unansweredMs: number;
}

const isAnswer = (error: unknown): boolean => error instanceof SystemError && error.provider !== undefined;

export const makeLiveness = (scopes: readonly string[], limits: LivenessLimits, clock: Clock): Liveness => {
  const begunAt = clock.monotonic();
  const activeAt = new Map(scopes.map((scope) => [scope, begunAt]));
  const served = new Set<string>();
  let answeredAt = begunAt;
  return {
    progress(scope) {
      answeredAt = clock.monotonic();
      activeAt.set(scope, answeredAt);
      served.add(scope);
    },
    failed(scope, error) {
      activeAt.set(scope, clock.monotonic());
      if (isAnswer(error)) answeredAt = clock.monotonic();
    },
    live() {
      const now = clock.monotonic();
      const active = [...activeAt.values()].every((at) => now - at < limits.idleMs);
      return active && now - answeredAt < limits.unansweredMs;
    },
    ready: () => scopes.every((scope) => served.has(scope)),
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
