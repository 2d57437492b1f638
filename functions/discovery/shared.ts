/**
 * Shares one load among all who ask: who comes while one is running gets the next one, since the running one may have
 * read before what the caller has to see.
 */
export const shared = <T>(load: () => Promise<T>): (() => Promise<T>) => {
  let running: Promise<T> | undefined;
  let next: Promise<T> | undefined;
  const start = (): Promise<T> => {
    next = undefined;
    const current = load().finally(() => {
      if (running === current) running = undefined;
    });
    running = current;
    return current;
  };
  return () => {
    if (!running) return start();
    next ??= running.then(start, start);
    return next;
  };
};
