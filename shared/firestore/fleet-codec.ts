/** What a document of the fleet index holds: records, compressed, some thousands in each. */

import { gunzipSync, gzipSync } from 'node:zlib';

import { z } from 'zod';

import type { ProxyRecord } from '#shared/domain/record.ts';

import { recordSchema } from './record-schema.ts';

/**
 * A record as the index has it, without its labels: they may be large, and nothing is judged by them. `updatedAt` is the
 * time of its newest write, in server milliseconds.
 */
export interface IndexedRecord {
  readonly record: ProxyRecord;
  readonly updatedAt: number;
}

export interface IndexPart {
  readonly records: readonly IndexedRecord[];
  /** UIDs of records that are there but cannot be read. */
  readonly unreadable: readonly string[];
}

/** Compressed bytes of one document; Firestore takes 1 MiB. */
const MAX_BYTES = 800_000;
const MAX_UNPACKED_BYTES = 64 * 1_024 * 1_024;

const part: z.ZodType<IndexPart> = z.object({
  records: z.array(z.object({ record: recordSchema, updatedAt: z.number() })),
  unreadable: z.array(z.string()),
});

const slices = <T>(items: readonly T[], of: number): readonly (readonly T[])[] =>
  Array.from({ length: of }, (_, index) =>
    items.slice(Math.floor((index * items.length) / of), Math.floor(((index + 1) * items.length) / of)),
  );

const packed = (content: IndexPart): Uint8Array => gzipSync(JSON.stringify(content), { level: 6 });

/** Into as few documents as it needs; none when there is nothing. */
export const packFleet = ({ records, unreadable }: IndexPart): readonly Uint8Array[] => {
  if (records.length + unreadable.length === 0) return [];
  for (let of = 1; ; of *= 2) {
    const ids = slices(unreadable, of);
    const parts = slices(records, of).map((some, index) =>
      packed({ records: some, unreadable: ids[index] ?? [] }),
    );
    if (parts.every(({ length }) => length <= MAX_BYTES) || of > records.length) return parts;
  }
};

/** `undefined` when it is not readable, or not in this version's form. */
export const unpackFleet = (data: Uint8Array): IndexPart | undefined => {
  try {
    const text = gunzipSync(data, { maxOutputLength: MAX_UNPACKED_BYTES }).toString('utf8');
    return part.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
};
