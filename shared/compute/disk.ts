/** Boot disks that outlived their machine. */

import { z } from 'zod';

import { SystemError } from '#shared/app/errors.ts';
import type { Leftover } from '#shared/domain/machine.ts';
import { MACHINE_LABELS } from '#shared/domain/names.ts';

import { lastSegment } from './machine.ts';

const diskSchema = z.object({
  id: z.coerce.string(),
  name: z.string().min(1),
  zone: z.string(),
  labels: z.record(z.string(), z.string()).nullish(),
  /** URLs of the instances that it is attached to. */
  users: z.array(z.string()).nullish(),
});

/** The disk as a leftover; undefined while something uses it. Throws `Transient` for what is no disk. */
export const leftoverOf = (reply: unknown): Leftover | undefined => {
  const disk = diskSchema.safeParse(reply);
  if (!disk.success)
    throw new SystemError('Transient', 'Compute Engine gave a disk that cannot be read.', {
      cause: disk.error,
    });
  const { id, name, zone, labels, users } = disk.data;
  if (users && users.length > 0) return undefined;
  const installation = labels?.[MACHINE_LABELS.installation];
  const uid = labels?.[MACHINE_LABELS.uid];
  return {
    id,
    name,
    zone: lastSegment(zone),
    ...(installation === undefined ? {} : { installation }),
    ...(uid === undefined ? {} : { uid }),
  };
};
