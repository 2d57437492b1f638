/** What a view document holds: gates without their drains, compressed, so that a thousand fit far below Firestore's limit. */

import { createHash } from 'node:crypto';
import { gunzipSync, gzipSync } from 'node:zlib';

import { z } from 'zod';

import type { Gate } from '#shared/domain/gate.ts';

import { gateSchema } from './record-schema.ts';

/** Most entries of one document on average; what a hash makes of it stays near. */
export const PER_DOCUMENT = 1_400;
/** Compressed bytes of one document; Firestore takes 1 MiB. */
export const MAX_BYTES = 600_000;
/** A view that unpacks to more than this is not one of ours. */
const MAX_UNPACKED_BYTES = 64 * 1_024 * 1_024;

const entries = z.array(gateSchema);

const documentOf = (uid: string, of: number): number =>
  createHash('sha256').update(uid).digest().readUInt32BE(0) % of;

const byUid = (a: Gate, b: Gate): number => (a.proxy.ref.uid < b.proxy.ref.uid ? -1 : 1);

const entryOf = ({ endpoint, open, closedReason, maxLeases, proxy }: Gate) => ({
  endpoint,
  open,
  closedReason,
  draining: [],
  maxLeases,
  proxy,
});

const packed = (gates: readonly Gate[]): Uint8Array =>
  gzipSync(JSON.stringify(gates.toSorted(byUid).map(entryOf)), { level: 6 });

export interface PackedView {
  readonly data: Uint8Array;
  /** Equal for equal content. */
  readonly digest: string;
}

/** Gates into as few documents as they need. A proxy stays in its document as long as their number stays. */
export const packViews = (gates: readonly Gate[]): readonly PackedView[] => {
  for (let of = Math.max(1, Math.ceil(gates.length / PER_DOCUMENT)); ; of *= 2) {
    const buckets = Map.groupBy(gates, ({ proxy }) => documentOf(proxy.ref.uid, of));
    const views = Array.from({ length: of }, (_, index) => packed(buckets.get(index) ?? []));
    const fits = views.every(({ length }) => length <= MAX_BYTES);
    // A proxy that is too large by itself is no reason to go on for ever.
    if (fits || of > Math.max(1, gates.length)) {
      return views.map((data) => ({ data, digest: createHash('sha256').update(data).digest('hex') }));
    }
  }
};

/** `undefined` when it is not readable. */
export const unpackView = (data: Uint8Array): readonly Gate[] | undefined => {
  try {
    const text = gunzipSync(data, { maxOutputLength: MAX_UNPACKED_BYTES }).toString('utf8');
    return entries.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
};
