/** What an installation knows of itself, `installations/{id}`: the cluster whose Proxies it looks after. */

import type { Firestore } from '@google-cloud/firestore';

import { SystemError, hasCode } from '#shared/app/errors.ts';

import { firestoreCall } from './client.ts';

export type InstallationStore = ReturnType<typeof installationStore>;

export const installationStore = (db: Firestore, installation: string) => {
  const document = db.collection('installations').doc(installation);
  return {
    /** The remembered cluster; `undefined` before the first run. Throws `InvalidSpec` when it cannot be read. */
    async cluster(): Promise<string | undefined> {
      const snapshot = await firestoreCall(db, 'read installation', () => document.get());
      if (!snapshot.exists) return undefined;
      const id: unknown = snapshot.get('clusterId');
      if (typeof id === 'string' && id !== '') return id;
      throw new SystemError('InvalidSpec', `Firestore: installations/${installation} names no cluster`);
    },

    /** Remembers a cluster for good; what another run has remembered in the meantime stays. */
    async remember(clusterId: string): Promise<void> {
      try {
        await firestoreCall(db, 'remember cluster', () => document.create({ clusterId }));
      } catch (error) {
        if (!hasCode(error, 'Conflict')) throw error;
      }
    },
  };
};
