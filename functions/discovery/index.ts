import { systemClock as clock } from '#shared/app/clock.ts';
import { parseConfig } from '#shared/app/config.ts';
import { systemIds as ids } from '#shared/app/ids.ts';
import { makeLog } from '#shared/app/log.ts';
import { logMetrics } from '#shared/app/metrics.ts';
import { serve } from '#shared/app/serve.ts';
import { openPublisher } from '#shared/pubsub/publisher.ts';

import { configSchema } from './config.ts';
import { makeHandler } from './handler.ts';
import { openStores, settingsOf } from './wiring.ts';

const log = makeLog((line) => process.stdout.write(line));
const tools = { clock, ids, log, metrics: logMetrics(log) };
const settings = settingsOf(parseConfig(configSchema, process.env));

const stores = openStores({ ...settings, clock });
const publisher = openPublisher(settings);

serve('discovery', makeHandler({ ...settings, ...tools, ...stores, publisher }), log);

process.once('SIGTERM', () => {
  void Promise.allSettled([stores.close(), publisher.close()]);
});
