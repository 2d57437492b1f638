/** What a probe fetches, and what it expects of the answer. */

import { isAddress, urlHost } from '#shared/domain/endpoint.ts';

import type { Place } from './connection.ts';
import { ProbeFailure } from './failure.ts';

/** `echo`: must answer 200 with our nonce and the address that it saw. `page`: any 2xx will do, its body is not read. */
export interface Target {
  readonly kind: 'echo' | 'page';
  readonly secure: boolean;
  readonly place: Place;
  /** Host and port as in a request line: an IPv6 literal has its brackets. */
  readonly authority: string;
  /** Path and query. */
  readonly path: string;
  /** Whom an ID token must be made out to for this target to answer; absent = it answers everybody. Only where `secure`. */
  readonly audience?: string;
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };

/** `undefined` for anything but an http or https URL. */
export const parseTarget = (url: string, kind: Target['kind']): Target | undefined => {
  const parsed = URL.parse(url);
  const defaultPort = DEFAULT_PORTS[parsed?.protocol ?? ''];
  if (!parsed || defaultPort === undefined || parsed.hostname === '') return undefined;
  const host = parsed.hostname.replace(/^\[|\]$/g, '');
  const port = parsed.port === '' ? defaultPort : Number(parsed.port);
  return {
    kind,
    secure: parsed.protocol === 'https:',
    place: { host, port },
    authority: `${urlHost(host)}:${port}`,
    path: `${parsed.pathname}${parsed.search}`,
  };
};

/** The path with a nonce, for targets that give it back. */
export const pathWithNonce = ({ path }: Target, nonce: string): string =>
  `${path}${path.includes('?') ? '&' : '?'}nonce=${nonce}`;

const readEcho = (body: Buffer): { nonce?: unknown; address?: unknown } => {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {};
  }
};

/** The address that an echo target saw. Throws `WrongContent` when this is not its answer to our nonce. */
export const exitAddressOf = (body: Buffer, nonce: string): string => {
  const { nonce: returned, address } = readEcho(body);
  if (returned !== nonce) throw new ProbeFailure('WrongContent', 'the nonce did not come back');
  if (typeof address !== 'string' || address.length > 45 || !isAddress(address))
    throw new ProbeFailure('WrongContent', 'no address came back');
  return address;
};

const canonical = (address: string): string => URL.parse(`http://${urlHost(address)}/`)?.hostname ?? address;

/** True for two spellings of one address. */
export const sameAddress = (a: string, b: string): boolean => a === b || canonical(a) === canonical(b);
