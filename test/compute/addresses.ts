/** Loopback addresses for machines, one owner each at a time. */

export interface AddressAllocator {
  /** An address that nobody has. Throws RangeError when all are taken. */
  next(): string;
  release(address: string): void;
}

/**
 * Hands out the addresses of a range in turn. A released one goes to the end of the queue, so that a machine that is
 * started again gets another address for as long as there is one.
 */
export const makeAddressAllocator = (
  range: { address(last: number): string },
  first = 1,
  last = 253,
): AddressAllocator => {
  const free = Array.from({ length: last - first + 1 }, (_, index) => range.address(first + index));
  const taken = new Set<string>();
  return {
    next: () => {
      const address = free.shift();
      if (address === undefined) throw new RangeError('every address of the range is taken');
      taken.add(address);
      return address;
    },
    release: (address) => {
      if (taken.delete(address)) free.push(address);
    },
  };
};

/** Addresses of one range, 1 to 253. */
const PER_RANGE = 253;

/** Several ranges as one, numbered through from 1, for more machines than one range has addresses for. */
export const joinRanges = (
  ranges: readonly { address(last: number): string }[],
): { readonly size: number; address(index: number): string } => ({
  size: ranges.length * PER_RANGE,
  address: (index) => {
    const range = ranges[Math.floor((index - 1) / PER_RANGE)];
    if (!range) throw new RangeError(`there is no address ${index} in ${ranges.length} ranges`);
    return range.address(1 + ((index - 1) % PER_RANGE));
  },
});
