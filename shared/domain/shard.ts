/** How a fleet is divided: every record falls into one of a few buckets for good, and a shard is a range of buckets. */

/** Stored with every record, so never changed. */
export const BUCKETS = 16;

/** Each shard has a view of its own, and a list of the fleet reads them all: 10 at 10,000 proxies. */
export const MAX_SHARDS = 8;

/** FNV-1a, 32 bits: spreads uids evenly whatever they look like. */
export const bucketOf = (uid: string): number => {
  let hash = 0x811c9dc5;
  for (let index = 0; index < uid.length; index += 1) {
    hash = Math.imul(hash ^ uid.charCodeAt(index), 0x01000193);
  }
  return (hash >>> 0) % BUCKETS;
};

/** Buckets from `from` to before `to`. */
export interface BucketRange {
  readonly from: number;
  readonly to: number;
}

/** Range `index` of `count` (at most `BUCKETS`): together they hold every bucket, each once. */
export const bucketRange = (index: number, count: number): BucketRange => ({
  from: Math.floor((index * BUCKETS) / count),
  to: Math.floor(((index + 1) * BUCKETS) / count),
});
