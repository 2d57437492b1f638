/** Proxy credentials `credentials/{endpointId}`, in a database of their own: immutable, written before the first probe. */

import type { Firestore } from '@google-cloud/firestore';
import { z } from 'zod';

import { SystemError, hasCode } from '#shared/app/errors.ts';

import { firestoreCall } from './client.ts';

export interface Credentials {
  readonly username: string;
  readonly password: string;
}

const schema: z.ZodType<Credentials> = z.object({ username: z.string(), password: z.string() });

export type CredentialStore = ReturnType<typeof credentialStore>;

export const credentialStore = (db: Firestore) => {
  const collection = db.collection('credentials');
  return {
    /** `undefined` when this endpoint has none. Throws when what is stored is unreadable. */
    async read(endpointId: string): Promise<Credentials | undefined> {
      const snapshot = await firestoreCall(db, 'read credentials', () => collection.doc(endpointId).get());
      if (!snapshot.exists) return undefined;
      const parsed = schema.safeParse(snapshot.data());
      if (parsed.success) return parsed.data;
      // The parse error would quote what it read: it is left out.
      throw new SystemError(
        'InvalidSpec',
        `Firestore: credentials of endpoint ${endpointId} are not readable`,
      );
    },

    /** Idempotent: an endpoint id is used once, so what exists is what this call writes. `uid` is that of its Proxy. */
    async create(
      endpointId: string,
      { uid, username, password }: Credentials & { readonly uid: string },
    ): Promise<void> {
      try {
        await firestoreCall(db, 'create credentials', () =>
          collection.doc(endpointId).create({ uid, username, password }),
        );
      } catch (error) {
        if (!hasCode(error, 'Conflict')) throw error;
      }
    },

    /** Ids of all endpoints of a Proxy that have any. */
    async idsOf(uid: string): Promise<readonly string[]> {
      const { docs } = await firestoreCall(db, 'query credentials', () =>
        collection.where('uid', '==', uid).select().get(),
      );
      return docs.map(({ id }) => id);
    },

    async remove(endpointId: string): Promise<void> {
      await firestoreCall(db, 'delete credentials', () => collection.doc(endpointId).delete());
    },
  };
};
