/** Conditional answers (RFC 9110, 13.1.2): who has the list as it is now is told so, and not sent it again. */

import { sha256 } from '#shared/app/digest.ts';
import type { HttpReply } from '#shared/app/http.ts';

const tagOf = (body: unknown): string => `"${sha256(JSON.stringify(body)).slice(0, 32)}"`;

/** If-None-Match compares weakly: a proxy on the way may have marked the tag as weak. */
const names = (ifNoneMatch: string, tag: string): boolean =>
  ifNoneMatch.trim() === '*' ||
  ifNoneMatch.split(',').some((candidate) => candidate.trim().replace(/^W\//, '') === tag);

/** A 200 with its `ETag`, or 304 when `If-None-Match` names that. To be asked again each time, by its caller alone. */
export const conditional = (body: unknown, ifNoneMatch: string | undefined): HttpReply => {
  const tag = tagOf(body);
  const headers = { etag: tag, 'cache-control': 'private, no-cache' };
  return ifNoneMatch !== undefined && names(ifNoneMatch, tag)
    ? { status: 304, headers }
    : { status: 200, headers, body };
};
