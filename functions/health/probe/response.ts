/**
 * A small and strict reader of HTTP/1 responses. It works on what has come so far, all of it, and says whether that is a
 * response; its bounds are what keeps an endless head or body from being a burden.
 */

export const MAX_HEAD_BYTES = 8192;
export const MAX_BODY_BYTES = 16_384;

export interface ResponseHead {
  readonly status: number;
  /** Lower-case names; repeated ones joined by commas. */
  readonly headers: ReadonlyMap<string, string>;
  /** Where the body begins. */
  readonly length: number;
}

export type Parsed<T> =
  | { readonly kind: 'more' }
  | { readonly kind: 'invalid'; readonly why: string }
  | { readonly kind: 'done'; readonly value: T };

const MORE = { kind: 'more' } as const;
const invalid = (why: string) => ({ kind: 'invalid', why }) as const;
const done = <T>(value: T) => ({ kind: 'done', value }) as const;

const STATUS_LINE = /^HTTP\/1\.[01] ([1-5]\d\d)(?: [^\r\n]*)?$/;
const HEADER_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\0]*?)[ \t]*$/;

const parseHeaders = (lines: readonly string[]): ReadonlyMap<string, string> | undefined => {
  const headers = new Map<string, string>();
  for (const line of lines) {
    const [, name, value] = HEADER_LINE.exec(line) ?? [];
    if (name === undefined || value === undefined) return undefined;
    const key = name.toLowerCase();
    const before = headers.get(key);
    headers.set(key, before === undefined ? value : `${before}, ${value}`);
  }
  return headers;
};

/** The final head; interim ones (1xx) before it are passed over, as part of the same bound. */
export const parseHead = (bytes: Buffer, from = 0): Parsed<ResponseHead> => {
  const end = bytes.indexOf('\r\n\r\n', from, 'latin1');
  if (end === -1 ? bytes.length > MAX_HEAD_BYTES : end > MAX_HEAD_BYTES) return invalid('head too large');
  if (end === -1) return MORE;
  const [statusLine = '', ...lines] = bytes.toString('latin1', from, end).split('\r\n');
  const status = Number(STATUS_LINE.exec(statusLine)?.[1]);
  const headers = parseHeaders(lines);
  if (Number.isNaN(status) || !headers) return invalid('head malformed');
  if (status === 101) return invalid('protocol switched');
  if (status < 200) return parseHead(bytes, end + 4);
  return done({ status, headers, length: end + 4 });
};

const parseChunks = (bytes: Buffer): Parsed<Buffer> => {
  const chunks: Buffer[] = [];
  let at = 0;
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', at, 'latin1');
    if (lineEnd === -1) return bytes.length - at > 256 ? invalid('chunk malformed') : MORE;
    const size = /^([0-9a-fA-F]{1,6})[ \t]*(?:;.*)?$/.exec(bytes.toString('latin1', at, lineEnd))?.[1];
    if (size === undefined) return invalid('chunk malformed');
    const start = lineEnd + 2;
    const end = start + Number.parseInt(size, 16);
    // Trailers, if any, are of no interest: the connection is not used again.
    if (end === start) return done(Buffer.concat(chunks));
    if (bytes.length < end + 2) return MORE;
    if (bytes.toString('latin1', end, end + 2) !== '\r\n') return invalid('chunk malformed');
    chunks.push(bytes.subarray(start, end));
    at = end + 2;
  }
};

/** The body behind a head. `ended` = the peer has closed its side. */
export const parseBody = (bytes: Buffer, head: ResponseHead, ended: boolean): Parsed<Buffer> => {
  const rest = bytes.subarray(head.length);
  if (rest.length > MAX_BODY_BYTES) return invalid('body too large');
  const coding = head.headers.get('transfer-encoding');
  const length = head.headers.get('content-length');
  if (coding !== undefined) {
    if (coding.toLowerCase() !== 'chunked' || length !== undefined) return invalid('framing ambiguous');
    return parseChunks(rest);
  }
  if (length === undefined) return ended ? done(rest) : MORE;
  if (!/^\d{1,9}$/.test(length)) return invalid('length malformed');
  const wanted = Number(length);
  if (wanted > MAX_BODY_BYTES) return invalid('body too large');
  return rest.length >= wanted ? done(rest.subarray(0, wanted)) : MORE;
};
