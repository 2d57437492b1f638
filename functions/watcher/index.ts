import { systemClock as clock } from '#shared/app/clock.ts';
import { parseConfig } from '#shared/app/config.ts';
import { systemIds as ids } from '#shared/app/ids.ts';
import { instrument } from '#shared/app/instrumentation.ts';
import { openCluster } from '#shared/kubernetes/cluster.ts';
import { openPublisher } from '#shared/pubsub/publisher.ts';

import { configSchema } from './config.ts';
import { makeWatcher } from './handler.ts';
import { closeServer, serve } from './server.ts';

const config = parseConfig(configSchema, process.env);
const projectId = config.GOOGLE_CLOUD_PROJECT;
const write = (line: string): boolean => process.stdout.write(line);
const tools = { clock, ids, ...instrument({ name: 'watcher', projectId, clock, ids, write }) };

const cluster = openCluster(config.KUBECONFIG ? { kubeconfig: config.KUBECONFIG } : { inCluster: true }, {
  ...tools,
  component: 'egress-proxies-watcher',
});
const publisher = openPublisher({
  projectId,
  changesTopic: config.PROXY_CHANGES_TOPIC,
  traceparent: tools.tracing.traceparent,
});
const { INSTALLATION_ID: installation, PROXY_NAMESPACES: namespaces } = config;
const pods = config.PROVIDERS.includes('kubernetes');
const watcher = makeWatcher({ ...tools, cluster, publisher, installation, namespaces, pods });

const stop = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop.abort());

const main = async (): Promise<void> => {
  const server = await serve(watcher.http, config.PORT, tools.log);
  await watcher.run(stop.signal);
  await publisher.close();
  await Promise.all([closeServer(server), cluster.close()]);
};

void main();
