/** The queue of replacements: who waits or works, in the order in which they asked. Read only while one waits. */

import type { DocumentSnapshot, Firestore } from '@google-cloud/firestore';

import { firestoreCall } from './client.ts';

/** What one who waits has to know. */
export interface Queue {
  /** Proxies of the installation that asked earlier and have not converged, those left out that are stuck or held. */
  readonly ahead: number;
  /** Those that are stuck on the very machine that is wanted here. */
  readonly stuck: number;
  /** All Proxies of the installation that have machines. */
  readonly fleet: number;
  /** `namespace/name` of one of the stuck, else of the one that asked first; absent when nobody is ahead. */
  readonly oldest?: string;
}

/** Who waits: since when (ms), and for which machine. */
export interface Waiting {
  readonly at: number;
  readonly hash?: string;
}

const nameOf = (document: DocumentSnapshot | undefined): { readonly oldest?: string } => {
  const namespace: unknown = document?.get('record.ref.namespace');
  const name: unknown = document?.get('record.ref.name');
  return typeof namespace === 'string' && typeof name === 'string' ? { oldest: `${namespace}/${name}` } : {};
};

/** The queue before somebody. Costs a read per thousand Proxies, and two documents at most. */
export const readQueue = (db: Firestore, installation: string, { at, hash }: Waiting): Promise<Queue> => {
  const ours = db.collection('proxies').where('installation', '==', installation);
  const earlier = ours.where('replacing', '<', at).orderBy('replacing');
  // Without a hash: nobody is stuck on nothing.
  const stuck = ours.where('stuckOn', '==', hash ?? '');
  const managed = ours.where('gone', '==', false).where('managed', '==', true);
  return firestoreCall(db, 'read the queue of replacements', async () => {
    const [ahead, same, fleet, first, stuckFirst] = await Promise.all([
      earlier.count().get(),
      stuck.count().get(),
      managed.count().get(),
      earlier.limit(1).select('record.ref').get(),
      stuck.limit(1).select('record.ref').get(),
    ]);
    return {
      ahead: ahead.data().count,
      stuck: same.data().count,
      fleet: fleet.data().count,
      ...nameOf(stuckFirst.docs[0] ?? first.docs[0]),
    };
  });
};
