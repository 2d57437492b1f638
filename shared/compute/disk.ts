/** Boot disks that outlived their machine. */

import { z } from 'zod';

import { SystemError } from '#shared/app/errors.ts';
import type { Leftover } from '#shared/domain/machine.ts';
import { MACHINE_LABELS } from '#shared/domain/names.ts';

import { createdAtOf, lastSegment, present } from './machine.ts';

const diskSchema = z.object({
  id: z.coerce.string(),
  name: z.string().min(1),
  /** Absent from a disk of a region. */
  zone: z.string().nullish(),
  creationTimestamp: z.string().nullish(),
  labels: z.record(z.string(), z.string()).nullish(),
  /** URLs of the instances that it is attached to. */
  users: z.array(z.string()).nullish(),
});

/**
 * The disk as a leftover; undefined while something uses it, and for one that is in no zone: no machine of ours has such
 * a disk. Throws `Transient` for what is no disk.
 */
export const leftoverOf = (reply: unknown): Leftover | undefined => {
  const disk = diskSchema.safeParse(reply);
  if (!disk.success)
    throw new SystemError('Transient', 'Compute Engine gave a disk that cannot be read.', {
      cause: disk.error,
    });
  const { id, name, zone, labels, users } = disk.data;
  if (!zone || (users && users.length > 0)) return undefined;
  return {
    id,
    name,
    zone: lastSegment(zone),
    ...present('installation', labels?.[MACHINE_LABELS.installation]),
    ...present('uid', labels?.[MACHINE_LABELS.uid]),
    ...present('createdAt', createdAtOf(disk.data)),
  };
};
