/** Services that start and stop at the same time, all or none of them. */

export interface Stoppable {
  stop(): Promise<void>;
}

/** Stops all of them, also when one cannot be stopped; rejects then, with every reason. */
export const stopTogether = async (services: readonly Stoppable[]): Promise<void> => {
  const settled = await Promise.allSettled(services.map((service) => service.stop()));
  const rejected = settled.filter((one) => one.status === 'rejected');
  const reasons = rejected.map((one): unknown => one.reason);
  if (reasons.length > 0) throw new AggregateError(reasons, `not everything stopped: ${reasons.join('; ')}`);
};

/** Resolves when all have started; when one fails, those that did start are stopped before this rejects. */
export const startTogether = async <const T extends readonly Promise<Stoppable>[]>(
  starting: T,
): Promise<{ -readonly [Index in keyof T]: Awaited<T[Index]> }> => {
  const settled = await Promise.allSettled(starting);
  const failed = settled.find((one) => one.status === 'rejected');
  if (failed) await stopTogether(settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : [])));
  return Promise.all(starting);
};
