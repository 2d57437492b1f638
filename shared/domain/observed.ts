/** What `status.observed` says of a Proxy: which generation, labels and Secrets have been dealt with. */

/** Version of a Secret that does not exist, in `secretVersions`. */
export const MISSING_SECRET = 'missing';

/** 53 bits that change with any label, whatever their order: 14 hex characters. Two different sets collide once in 10^15. */
export const labelsHash = (labels: Readonly<Record<string, string>> | undefined): string => {
  const text = JSON.stringify(Object.entries(labels ?? {}).sort(([a], [b]) => (a < b ? -1 : 1)));
  let [high, low] = [0xdeadbeef, 0x41c6ce57];
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    high = Math.imul(high ^ code, 2654435761);
    low = Math.imul(low ^ code, 1597334677);
  }
  high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909);
  low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909);
  return (2 ** 32 * (2097151 & low) + (high >>> 0)).toString(16).padStart(14, '0');
};
