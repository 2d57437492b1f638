import { systemClock as clock } from '#shared/app/clock.ts';
import { parseConfig } from '#shared/app/config.ts';
import { systemIds as ids } from '#shared/app/ids.ts';
import { instrument } from '#shared/app/instrumentation.ts';
import { serve } from '#shared/app/serve.ts';
import { clusterOptions, openCluster } from '#shared/kubernetes/cluster.ts';
import { buildProviders } from '#shared/providers/providers.ts';
import { openPublisher } from '#shared/pubsub/publisher.ts';

import { configSchema } from './config.ts';
import { makeHandler } from './handler.ts';
import { countedProviders, openStores, settingsOf } from './wiring.ts';

const config = parseConfig(configSchema, process.env);
const settings = settingsOf(config);
const write = (line: string): boolean => process.stdout.write(line);
const tools = { clock, ids, ...instrument({ ...settings, name: 'provision', clock, ids, write }) };

const options = clusterOptions(config);
const cluster = openCluster(options, { ...tools, component: 'egress-proxies-provision' });
const built = buildProviders(config.PROVIDERS, { ...settings, ...tools, clusterOptions: options });
const providers = countedProviders(built, tools.metrics);
const publisher = openPublisher({ ...settings, traceparent: tools.tracing.traceparent });
const stores = openStores(settings);

serve(
  'provision',
  makeHandler({ ...settings, ...tools, ...stores, providers, publisher, cluster }),
  tools.log,
);

process.once('SIGTERM', () => {
  void Promise.allSettled(
    [cluster, ...Object.values(providers), publisher, stores].map((each) => each.close()),
  );
});
