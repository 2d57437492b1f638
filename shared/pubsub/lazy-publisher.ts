/** A publisher whose client library is loaded by the first message. */

import { SystemError } from '#shared/app/errors.ts';
import { lazily } from '#shared/app/lazily.ts';

import type { Publisher, PublisherOptions } from './publisher.ts';

const load = async (options: PublisherOptions): Promise<Publisher> => {
  try {
    const { openPublisher } = await import('./publisher.ts');
    return openPublisher(options);
  } catch (cause) {
    throw new SystemError('Transient', 'Pub/Sub: the client could not be loaded', { cause });
  }
};

/** As `openPublisher`. A message that finds the library not loadable throws `Transient`, and the next one tries again. */
export const lazyPublisher = (options: PublisherOptions): Publisher => {
  const publisher = lazily(() => load(options));
  return {
    change: async (message, key) => (await publisher.get()).change(message, key),
    probe: async (message) => (await publisher.get()).probe(message),
    close: async () => (await publisher.opened())?.close(),
  };
};
