/** The stores, whose client library is loaded by the first read: a run lists machines before it reads anything. */

import { SystemError } from '#shared/app/errors.ts';
import { lazily } from '#shared/app/lazily.ts';

import type { Dependencies } from './handler.ts';
import type { StoreOptions } from './wiring.ts';

type Stores = Pick<Dependencies, 'records' | 'fleet' | 'sightings' | 'installations' | 'lock' | 'sweep'> & {
  close(): Promise<void>;
};

const load = async (options: StoreOptions): Promise<Stores> => {
  try {
    const { openStores } = await import('./wiring.ts');
    return openStores(options);
  } catch (cause) {
    throw new SystemError('Transient', 'Firestore: the client could not be loaded', { cause });
  }
};

/** As `openStores`. A call that finds the library not loadable throws `Transient`, and the next one tries again. */
export const lazyStores = (options: StoreOptions): Stores => {
  const stores = lazily(() => load(options));
  const { get } = stores;
  return {
    records: { read: async (uid) => (await get()).records.read(uid) },
    fleet: {
      read: async () => (await get()).fleet.read(),
      save: async (fleet, swept) => (await get()).fleet.save(fleet, swept),
    },
    sightings: {
      all: async () => (await get()).sightings.all(),
      add: async (keys, at) => (await get()).sightings.add(keys, at),
      remove: async (keys) => (await get()).sightings.remove(keys),
    },
    installations: {
      cluster: async () => (await get()).installations.cluster(),
      remember: async (id) => (await get()).installations.remember(id),
    },
    lock: async (holder, ttlMs) => (await get()).lock(holder, ttlMs),
    sweep: async (tombstones) => (await get()).sweep(tombstones),
    close: async () => (await stores.opened())?.close(),
  };
};
