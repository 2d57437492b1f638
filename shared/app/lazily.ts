/** What is made when it is first needed, so that no start waits for it. */

export interface Lazy<T> {
  /** Opens at the first call; later calls get the same one. An opening that failed is tried again by the next call. */
  readonly get: () => Promise<T>;
  /** What is there or on its way, `undefined` when there is none; never throws. For closing. */
  readonly opened: () => Promise<T | undefined>;
}

/** `open` runs at most once at a time. */
export const lazily = <T>(open: () => Promise<T>): Lazy<T> => {
  let opening: Promise<T> | undefined;
  return {
    get: async () => {
      const mine = (opening ??= open());
      try {
        return await mine;
      } catch (error) {
        if (opening === mine) opening = undefined;
        throw error;
      }
    },
    opened: async () => opening?.catch(() => undefined),
  };
};
