/** The queue of replacements: who waits or works, in the order in which they asked. Read only while one waits. */

import type { Firestore } from '@google-cloud/firestore';

import { firestoreCall } from './client.ts';

/** What one who waits has to know. */
export interface Queue {
  /** Proxies of the installation that asked earlier and have not converged. */
  readonly ahead: number;
  /** All Proxies of the installation that have machines. */
  readonly fleet: number;
  /** `namespace/name` of the one that asked first; absent when nobody is ahead. */
  readonly oldest?: string;
}

const nameOf = (namespace: unknown, name: unknown): { readonly oldest?: string } =>
  typeof namespace === 'string' && typeof name === 'string' ? { oldest: `${namespace}/${name}` } : {};

/** The queue before somebody who asked `at` (ms). Costs one read per thousand Proxies and one document. */
export const readQueue = (db: Firestore, installation: string, at: number): Promise<Queue> => {
  const ours = db.collection('proxies').where('installation', '==', installation);
  const earlier = ours.where('replacing', '<', at).orderBy('replacing');
  const managed = ours.where('gone', '==', false).where('managed', '==', true);
  return firestoreCall(db, 'read the queue of replacements', async () => {
    const [ahead, fleet, first] = await Promise.all([
      earlier.count().get(),
      managed.count().get(),
      earlier.limit(1).select('record.ref').get(),
    ]);
    const [oldest] = first.docs;
    return {
      ahead: ahead.data().count,
      fleet: fleet.data().count,
      ...nameOf(oldest?.get('record.ref.namespace'), oldest?.get('record.ref.name')),
    };
  });
};
