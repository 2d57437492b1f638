/** How many leases still run on each endpoint of a proxy: what a drain waits for. */

import type { Firestore } from '@google-cloud/firestore';
import { z } from 'zod';

import { SystemError } from '#shared/app/errors.ts';

import { firestoreCall } from './client.ts';
import { jsonText } from './lease-codec.ts';

/** Live leases by endpoint id; `lastExpiry` in server milliseconds. Endpoints without live leases are left out. */
export type LeaseCounts = Readonly<Record<string, { readonly count: number; readonly lastExpiry: number }>>;

const schema = jsonText.pipe(
  z.object({
    leases: z.record(z.string(), z.object({ endpoint: z.object({ id: z.string() }), expiresAt: z.number() })),
  }),
);

/** Counts by the server's clock. No document means no lease; one that cannot be read throws `InvalidSpec`. */
export const readLeaseCounts = async (db: Firestore, uid: string): Promise<LeaseCounts> => {
  const snapshot = await firestoreCall(db, `read leases ${uid}`, () =>
    db.collection('leases').doc(uid).get(),
  );
  if (!snapshot.exists) return {};
  const parsed = schema.safeParse(snapshot.get('leases'));
  if (!parsed.success) throw new SystemError('InvalidSpec', `Firestore: leases of ${uid} are not readable`);
  const now = snapshot.readTime.toMillis();
  const counts: Record<string, { count: number; lastExpiry: number }> = {};
  for (const { endpoint, expiresAt } of Object.values(parsed.data.leases)) {
    if (expiresAt <= now) continue;
    const before = counts[endpoint.id] ?? { count: 0, lastExpiry: 0 };
    counts[endpoint.id] = {
      count: before.count + 1,
      lastExpiry: Math.max(before.lastExpiry, expiresAt),
    };
  }
  return counts;
};
