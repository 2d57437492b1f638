/** Everything that a push needs, loaded by the first one. */

import type { Clock } from '#shared/app/clock.ts';
import type { Ids } from '#shared/app/ids.ts';
import type { Instrumentation } from '#shared/app/instrumentation.ts';
import type { Metrics } from '#shared/app/metrics.ts';
import type { Application } from '#shared/app/on-demand.ts';
import { clusterOn } from '#shared/kubernetes/api.ts';
import { lazyConnection } from '#shared/kubernetes/lazy-connection.ts';
import type { ClusterOptions } from '#shared/kubernetes/options.ts';
import { countCalls } from '#shared/providers/counted.ts';
import { buildProviders, type Providers } from '#shared/providers/providers.ts';
import { lazyPublisher } from '#shared/pubsub/lazy-publisher.ts';

import type { Settings } from './config.ts';
import { makeHandler } from './handler.ts';
import { openStores } from './wiring.ts';

export interface ApplicationOptions extends Settings, Instrumentation {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly clusterOptions: ClusterOptions;
  readonly providerNames: readonly string[];
}

const COMPONENT = 'egress-proxies-provision';

/** The same, with their calls counted. */
const countedProviders = (providers: Providers, metrics: Metrics): Providers =>
  countCalls(providers, ({ provider, call, result }) =>
    metrics.count('provider_calls', { provider, call, result }),
  );

export const openApplication = (options: ApplicationOptions): Application => {
  const cluster = clusterOn(lazyConnection(options.clusterOptions, COMPONENT), {
    ...options,
    component: COMPONENT,
  });
  const built = buildProviders(options.providerNames, options);
  const providers = countedProviders(built, options.metrics);
  const publisher = lazyPublisher({ ...options, traceparent: options.tracing.traceparent });
  const stores = openStores(options);
  return {
    handler: makeHandler({ ...options, ...stores, providers, publisher, cluster }),
    close: () =>
      Promise.allSettled(
        [cluster, ...Object.values(providers), publisher, stores].map((each) => each.close()),
      ),
  };
};
