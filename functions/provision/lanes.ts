/** One lane per key: work for the same key never overlaps, and calls that wait share the next run. */

interface Lane<T> {
  readonly running: Promise<T>;
  waiting?: Promise<T>;
}

export interface Lanes<T> {
  /**
   * Runs `work`. While a run for this key goes on, all further calls share one that begins when it has ended: what they
   * are about may have come too late for the running one. A lane without work is forgotten.
   */
  enter(key: string, work: () => Promise<T>): Promise<T>;
  /** Lanes with work in them. */
  size(): number;
}

export const makeLanes = <T>(): Lanes<T> => {
  const lanes = new Map<string, Lane<T>>();
  const begin = (key: string, work: () => Promise<T>): Promise<T> => {
    const running = work().finally(() => {
      if (lanes.get(key)?.running === running) lanes.delete(key);
    });
    lanes.set(key, { running });
    return running;
  };
  return {
    enter(key, work) {
      const lane = lanes.get(key);
      if (!lane) return begin(key, work);
      lane.waiting ??= lane.running.then(
        () => begin(key, work),
        () => begin(key, work),
      );
      return lane.waiting;
    },
    size: () => lanes.size,
  };
};
