/** Timers that end together, so that nothing of a stopped stand-in runs on. */

export interface Timers {
  /** Runs `work` after `ms`, unless stopped before. */
  after(ms: number, work: () => void): void;
  stop(): void;
}

export const makeTimers = (): Timers => {
  const pending = new Set<NodeJS.Timeout>();
  let stopped = false;
  return {
    after: (ms, work) => {
      if (stopped) return;
      const timer = setTimeout(() => {
        pending.delete(timer);
        work();
      }, ms);
      pending.add(timer);
    },
    stop: () => {
      stopped = true;
      for (const timer of pending) clearTimeout(timer);
      pending.clear();
    },
  };
};
