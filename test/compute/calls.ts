/** The log of API calls: tests count calls instead of guessing. */

import type { ApiMethod } from './faults.ts';

export interface ApiCall {
  /** Milliseconds since the epoch, when the call arrived. */
  readonly at: number;
  readonly method: ApiMethod | 'unknown';
  readonly httpMethod: string;
  /** Path without the query. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly zone?: string;
  /** Of the instance, disk or operation. */
  readonly name?: string;
  /** By whose address it came, where callers have addresses of their own. */
  readonly caller?: string;
  /** The status that was sent; 0 when the answer was withheld. */
  readonly status: number;
}

export interface CallMatch {
  readonly method?: string | undefined;
  readonly zone?: string | undefined;
  readonly name?: string | undefined;
  readonly namePrefix?: string | undefined;
  readonly caller?: string | undefined;
  readonly status?: number | undefined;
  /** Calls at or after this time. */
  readonly since?: number | undefined;
}

export interface CallLog {
  record(call: ApiCall): void;
  /** In the order of their answers. */
  find(match?: CallMatch): readonly ApiCall[];
  reset(): void;
}

const MAX_CALLS = 200_000;

const EXACT = ['method', 'zone', 'name', 'caller', 'status'] as const;

const isMatch = (call: ApiCall, match: CallMatch): boolean =>
  EXACT.every((key) => match[key] === undefined || call[key] === match[key]) &&
  (call.name ?? '').startsWith(match.namePrefix ?? '') &&
  call.at >= (match.since ?? 0);

/** Keeps the latest 200,000 calls. */
export const makeCallLog = (): CallLog => {
  let calls: ApiCall[] = [];
  return {
    record: (call) => {
      calls.push(call);
      if (calls.length > MAX_CALLS * 1.1) calls = calls.slice(-MAX_CALLS);
    },
    find: (match = {}) => calls.filter((call) => isMatch(call, match)),
    reset: () => {
      calls = [];
    },
  };
};
