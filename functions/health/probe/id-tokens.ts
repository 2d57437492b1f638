/** ID tokens for a target that asks who calls: had from the platform, kept, and fetched anew before they end. */

import { z } from 'zod';

import type { Clock } from '#shared/app/clock.ts';
import { SystemError } from '#shared/app/errors.ts';

export interface IdTokens {
  /** A token that is valid for `audience`. Throws a `SystemError`, within seconds, when there is none to be had. */
  of(audience: string): Promise<string>;
}

export const noIdTokens: IdTokens = {
  of: () => Promise.reject(new SystemError('NotConfigured', 'there is nobody to ask for ID tokens')),
};

/** A token is fetched anew so long before it ends. */
const EARLY_MS = 300_000;
/** With less than this it may end on its way. */
const LEAST_MS = 30_000;
const PATIENCE_MS = 3000;
/** While the one at hand is still good, a fetch that failed is not repeated at once. */
const RETRY_MS = 10_000;

interface Token {
  readonly text: string;
  /** Milliseconds of the wall clock. */
  readonly endsAt: number;
}

const claims = z.object({ exp: z.number() });

const parseToken = (text: string): Token => {
  const [, payload = ''] = /^[\w-]+\.([\w-]+)\.[\w-]+$/.exec(text) ?? [];
  try {
    const { exp } = claims.parse(JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')));
    return { text, endsAt: exp * 1000 };
  } catch {
    // Without the cause: it may quote what came.
    throw new SystemError('Unauthorised', 'what came as ID token is none');
  }
};

const inTime = async <T>(work: Promise<T>): Promise<T> => {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => reject(new SystemError('Transient', `no ID token within ${PATIENCE_MS} ms`)),
    PATIENCE_MS,
  );
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
};

/** One token of one audience; those who ask at the same time share a fetch. */
const makeKept = (fetchToken: () => Promise<string>, clock: Clock) => {
  let token: Token | undefined;
  let fetching: Promise<Token> | undefined;
  let failedAt = Number.NEGATIVE_INFINITY;
  const refresh = async (): Promise<Token> => {
    try {
      token = parseToken(await inTime(fetchToken()));
      return token;
    } catch (error) {
      failedAt = clock.monotonic();
      throw error;
    } finally {
      fetching = undefined;
    }
  };
  return async (): Promise<string> => {
    const left = (token?.endsAt ?? 0) - clock.now();
    const usable = left > LEAST_MS ? token : undefined;
    if (usable && (left > EARLY_MS || clock.monotonic() - failedAt < RETRY_MS)) return usable.text;
    try {
      return (await (fetching ??= refresh())).text;
    } catch (error) {
      if (usable) return usable.text;
      throw error;
    }
  };
};

export const makeIdTokens = (fetchToken: (audience: string) => Promise<string>, clock: Clock): IdTokens => {
  const kept = new Map<string, () => Promise<string>>();
  return {
    of(audience) {
      const known = kept.get(audience) ?? makeKept(() => fetchToken(audience), clock);
      kept.set(audience, known);
      return known();
    },
  };
};

/** A token of the service account that this process runs as, from the metadata server. Nothing is loaded before the first call. */
export const fetchGoogleIdToken = async (audience: string): Promise<string> => {
  const { Compute } = await import('google-auth-library');
  return new Compute().fetchIdToken(encodeURIComponent(audience));
};
