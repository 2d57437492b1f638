/** Merge patches (RFC 7386) that make one status out of another. */

import { isDeepStrictEqual } from 'node:util';

import type { ProxyStatus } from './proxy.gen.ts';

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const merge = (before: Fields, after: Fields): Fields => {
  const patch: Record<string, unknown> = {};
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [old, value] = [before[key], after[key]];
    if (isDeepStrictEqual(old, value)) continue;
    if (value === undefined) patch[key] = null;
    else patch[key] = isFields(old) && isFields(value) ? merge(old, value) : value;
  }
  return patch;
};

/** The smallest patch, with null for every field that vanished; undefined when the two are equal. */
export const statusPatch = (before: ProxyStatus | undefined, after: ProxyStatus): Fields | undefined => {
  const patch = merge({ ...before }, { ...after });
  return Object.keys(patch).length === 0 ? undefined : patch;
};
