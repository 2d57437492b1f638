/** What may go wrong with Pods, switched on by tests. */

import { z } from 'zod';

/** `name` limits a fault to the Pods of that name; without it, it is for all. */
export const podFaultSchema = z.object({
  kind: z.enum(['imagePull', 'unschedulable', 'neverReady', 'stuckTerminating']),
  name: z.string().optional(),
});
export type PodFault = z.infer<typeof podFaultSchema>;

export const makePodFaults = () => {
  const active = new Map<string, PodFault>();
  let count = 0;
  return {
    add(fault: PodFault): string {
      count += 1;
      active.set(String(count), fault);
      return String(count);
    },
    remove: (id: string): boolean => active.delete(id),
    clear: (): void => active.clear(),
    list: (): readonly (readonly [id: string, fault: PodFault])[] => [...active],
    has: (kind: PodFault['kind'], name: string): boolean =>
      [...active.values()].some(
        (fault) => fault.kind === kind && (fault.name === undefined || fault.name === name),
      ),
  };
};
export type PodFaults = ReturnType<typeof makePodFaults>;
