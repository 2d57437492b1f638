/** Lists in pages, filtered and ordered as the API does it. */

import { invalid } from './errors.ts';
import { parseFilter } from './filter.ts';
import type { Resource } from './resources.ts';

const MAX_RESULTS = 500;

export interface Page<T> {
  readonly items: readonly T[];
  readonly nextPageToken?: string;
}

const offsetOf = (token: string | null): number => {
  if (token === null || token === '') return 0;
  const offset = Number(
    Buffer.from(token, 'base64url')
      .toString()
      .replace(/^after:/u, ''),
  );
  if (!Number.isInteger(offset) || offset < 0) throw invalid('pageToken', token, 'Not a page token.');
  return offset;
};

const limitOf = (maxResults: string | null): number => {
  const limit = maxResults === null ? MAX_RESULTS : Number(maxResults);
  if (!Number.isInteger(limit) || limit < 0 || limit > MAX_RESULTS) {
    throw invalid('maxResults', String(maxResults), `Values must be within the range: [0, ${MAX_RESULTS}]`);
  }
  return limit === 0 ? MAX_RESULTS : limit;
};

/** The items of one page of `all`, in its order; a page has at most `longest`, whatever was asked for. */
export const pageOf = <T>(all: readonly T[], query: URLSearchParams, longest: number): Page<T> => {
  const offset = offsetOf(query.get('pageToken'));
  const limit = Math.min(longest, limitOf(query.get('maxResults')));
  const items = all.slice(offset, offset + limit);
  return offset + limit < all.length
    ? { items, nextPageToken: Buffer.from(`after:${offset + limit}`).toString('base64url') }
    : { items };
};

const timeOf = (resource: Resource): string => {
  const value = resource['creationTimestamp'] ?? resource['insertTime'];
  return typeof value === 'string' ? value : '';
};

const nameOf = (resource: Resource): string => (typeof resource['name'] === 'string' ? resource['name'] : '');

const compare = (a: string, b: string): number => {
  if (a === b) return 0;
  return a < b ? -1 : 1;
};

/** Filters with `filter` and orders by `orderBy`: name (default) or `creationTimestamp desc`. */
export const select = (all: readonly Resource[], query: URLSearchParams): readonly Resource[] => {
  const predicate = parseFilter(query.get('filter') ?? '');
  const orderBy = query.get('orderBy') ?? '';
  if (!['', 'name', 'creationTimestamp desc'].includes(orderBy)) {
    throw invalid('orderBy', orderBy, 'Only name and creationTimestamp desc are supported.');
  }
  return all
    .filter((resource) => predicate(resource))
    .sort((a, b) =>
      orderBy === 'creationTimestamp desc'
        ? compare(timeOf(b), timeOf(a)) || compare(nameOf(b), nameOf(a))
        : compare(nameOf(a), nameOf(b)),
    );
};
