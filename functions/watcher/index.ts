import { systemClock } from '#shared/app/clock.ts';
import { parseConfig } from '#shared/app/config.ts';
import { systemIds } from '#shared/app/ids.ts';
import { makeLog } from '#shared/app/log.ts';
import { logMetrics } from '#shared/app/metrics.ts';
import { openCluster } from '#shared/kubernetes/cluster.ts';
import { openPublisher } from '#shared/pubsub/publisher.ts';

import { schema } from './config.ts';
import { makeWatcher } from './handler.ts';
import { closeServer, serve } from './server.ts';

const config = parseConfig(schema, process.env);
const log = makeLog((line) => process.stdout.write(line), { function: 'watcher' });
const tools = { clock: systemClock, ids: systemIds, log, metrics: logMetrics(log) };

const cluster = openCluster(config.KUBECONFIG ? { kubeconfig: config.KUBECONFIG } : { inCluster: true }, {
  ...tools,
  component: 'egress-proxies-watcher',
});
const publisher = openPublisher({
  projectId: config.GOOGLE_CLOUD_PROJECT,
  changesTopic: config.PROXY_CHANGES_TOPIC,
});
const { INSTALLATION_ID: installation, PROXY_NAMESPACES: namespaces } = config;
const pods = config.PROVIDERS.includes('kubernetes');
const watcher = makeWatcher({ ...tools, cluster, publisher, installation, namespaces, pods });

const stop = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop.abort());

const main = async (): Promise<void> => {
  const server = await serve(watcher.http, config.PORT, log);
  await watcher.run(stop.signal);
  await publisher.close();
  await Promise.all([closeServer(server), cluster.close()]);
};

void main();
