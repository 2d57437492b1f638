/** Which addresses lead out to the internet and which back into somebody's own network. */

import { isAddress } from './endpoint.ts';

const octets = (host: string): number => host.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);

/** IANA's special-purpose registry, as first address and prefix length. */
const RESERVED_V4: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
];

const isReservedV4 = (host: string): boolean =>
  RESERVED_V4.some(([first, bits]) => {
    const size = 2 ** (32 - bits);
    return Math.floor(octets(host) / size) === Math.floor(octets(first) / size);
  });

const hexGroups = (part: string): number[] =>
  part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16));

/** The eight groups of an IPv6 address; undefined when it is none. A dotted tail counts as two groups. */
const groups = (host: string): readonly number[] | undefined => {
  const dotted = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(host);
  const value = dotted?.[2] === undefined ? 0 : octets(dotted[2]);
  const text = dotted
    ? `${dotted[1] ?? ''}${Math.floor(value / 65_536).toString(16)}:${(value % 65_536).toString(16)}`
    : host;
  const [head = '', tail] = text.split('::');
  const front = hexGroups(head);
  const back = tail === undefined ? [] : hexGroups(tail);
  const missing = 8 - front.length - back.length;
  if (missing < 0 || (tail === undefined && missing !== 0)) return undefined;
  const all = [...front, ...Array<number>(missing).fill(0), ...back];
  return all.every((group) => Number.isInteger(group) && group >= 0 && group <= 0xffff) ? all : undefined;
};

/** The IPv4 address in two neighbouring groups. */
const embedded = (all: readonly number[], at: number): string => {
  const [high = 0, low = 0] = all.slice(at, at + 2);
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`;
};

/** First groups of IPv6 prefixes that carry an IPv4 address, and the group at which it begins. */
const CARRIERS: readonly (readonly [readonly number[], number])[] = [
  [[0, 0, 0, 0, 0, 0xffff], 6],
  [[0x64, 0xff9b, 0, 0, 0, 0], 6],
  [[0x2002], 1],
];

/** First group and mask: discard and unspecified, NAT64 for local use, unique local, link-local, site-local, multicast. */
const RESERVED_V6: readonly (readonly [number, number])[] = [
  [0x0000, 0xff00],
  [0x0100, 0xff00],
  [0x0064, 0xffff],
  [0xfc00, 0xfe00],
  [0xfe80, 0xffc0],
  [0xfec0, 0xffc0],
  [0xff00, 0xff00],
];

const isReservedV6 = (host: string): boolean => {
  const all = groups(host);
  if (!all) return true;
  const carrier = CARRIERS.find(([prefix]) => prefix.every((group, index) => all[index] === group));
  if (carrier) return isReservedV4(embedded(all, carrier[1]));
  return RESERVED_V6.some(([prefix, mask]) => ((all[0] ?? 0) & mask) === prefix);
};

const INTERNAL_NAME = /(^|\.)(localhost|internal|local)\.?$/;

/**
 * True for loopback, link-local, private and other addresses that no stranger can be reached at, and for names that by
 * convention mean such addresses. Any other name is false: what it resolves to is not looked up.
 */
export const isReserved = (host: string): boolean => {
  if (!isAddress(host)) return INTERNAL_NAME.test(host.toLowerCase());
  return host.includes(':') ? isReservedV6(host) : isReservedV4(host);
};
