/** Everything that answers a request, loaded by the first one. */

import type { Clock } from '#shared/app/clock.ts';
import type { Ids } from '#shared/app/ids.ts';
import type { Instrumentation } from '#shared/app/instrumentation.ts';
import type { Application } from '#shared/app/on-demand.ts';
import { lazyPublisher } from '#shared/pubsub/lazy-publisher.ts';

import type { Settings } from './config.ts';
import { makeHandler } from './handler.ts';
import { openStores } from './wiring.ts';

export interface ApplicationOptions extends Settings, Pick<Instrumentation, 'log' | 'metrics'> {
  readonly clock: Clock;
  readonly ids: Ids;
  /** `traceparent` of the request that the caller runs in. */
  readonly traceparent: () => string | undefined;
  /** Called when calls of one database have hung for some time, and none has got through. */
  readonly onStuck: () => void;
}

export const openApplication = (options: ApplicationOptions): Application => {
  const stores = openStores(options);
  const publisher = lazyPublisher(options);
  return {
    handler: makeHandler({ ...options, ...stores, publisher }),
    close: () => Promise.allSettled([stores.close(), publisher.close()]),
  };
};
