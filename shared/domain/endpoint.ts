/** An address that a proxy answers on. A new publication is a new endpoint, even at the same address. */

export type EndpointScheme = 'http' | 'https';

/** `id` is random per publication; verdicts, probe results and leases are bound to it and never move to another. */
export interface Endpoint {
  readonly id: string;
  readonly host: string;
  readonly port: number;
  readonly scheme: EndpointScheme;
  /** The provider's unique id of the machine that answers here; empty for External. */
  readonly instanceId: string;
  /** Version of the credentials that the machine was given; empty when it asks for none. */
  readonly credentialsVersion: string;
}

/** Two endpoints are the same place when a client that connects cannot tell them apart. */
export const samePlace = (a: Omit<Endpoint, 'id'>, b: Omit<Endpoint, 'id'>): boolean =>
  a.host === b.host &&
  a.port === b.port &&
  a.scheme === b.scheme &&
  a.instanceId === b.instanceId &&
  a.credentialsVersion === b.credentialsVersion;

const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$/;

/** True for IPv4 and IPv6 literals (without brackets), false for names. */
export const isAddress = (host: string): boolean => IPV4.test(host) || host.includes(':');

/** `host` as it stands in a URL: IPv6 literals get brackets. */
export const urlHost = (host: string): string => (host.includes(':') ? `[${host}]` : host);
