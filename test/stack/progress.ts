/** What the user sees while the stack comes up: one line per step with its time. */

export interface Progress {
  /** Runs a step and prints its line; a failing step is named in the error. */
  step<T>(what: string, work: () => Promise<T>): Promise<T>;
  note(line: string): void;
}

const seconds = (from: number): string => `${((performance.now() - from) / 1000).toFixed(1)} s`;

/** Once `signal` has aborted no further step begins, and what ends is not worth a note. */
export const makeProgress = (write: (line: string) => void, signal?: AbortSignal): Progress => {
  const begun = performance.now();
  return {
    async step(what, work) {
      signal?.throwIfAborted();
      const from = performance.now();
      try {
        const result = await work();
        write(`  ${seconds(begun).padStart(7)}  ${what} (${seconds(from)})`);
        return result;
      } catch (cause) {
        throw new Error(`${what}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
      }
    },
    note: (line) => {
      if (!signal?.aborted) write(line);
    },
  };
};
