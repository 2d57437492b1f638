/** Credentials of endpoints, read once per instance: they never change under an endpoint's id. */

import type { Credentials, CredentialStore } from '#shared/firestore/credentials.ts';

const KEPT = 1_000;

export interface CredentialCache {
  /** `undefined` = this endpoint asks for none. Throws as the store does. */
  read(endpointId: string): Promise<Credentials | undefined>;
}

export const credentialCache = (store: Pick<CredentialStore, 'read'>): CredentialCache => {
  const kept = new Map<string, Credentials>();
  return {
    async read(endpointId) {
      const known = kept.get(endpointId);
      if (known) return known;
      const credentials = await store.read(endpointId);
      if (credentials) kept.set(endpointId, credentials);
      const [oldest] = kept.keys();
      if (oldest !== undefined && kept.size > KEPT) kept.delete(oldest);
      return credentials;
    },
  };
};
