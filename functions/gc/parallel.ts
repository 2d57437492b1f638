/** Runs `work` on every item, at most `width` at a time, and returns the results in the order of the items. */
export const inParallel = async <T, R>(
  items: readonly T[],
  width: number,
  work: (item: T) => Promise<R>,
): Promise<readonly R[]> => {
  const results: { readonly index: number; readonly result: R }[] = [];
  const queue = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of queue) results.push({ index, result: await work(item) });
  };
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, worker));
  return results.sort((a, b) => a.index - b.index).map(({ result }) => result);
};
