import { http } from '@google-cloud/functions-framework';

import { systemClock as clock } from '#shared/app/clock.ts';
import { parseConfig } from '#shared/app/config.ts';
import { toFramework } from '#shared/app/http.ts';
import { systemIds as ids } from '#shared/app/ids.ts';
import { makeLog } from '#shared/app/log.ts';
import { logMetrics } from '#shared/app/metrics.ts';
import { openPublisher } from '#shared/pubsub/publisher.ts';

import { configSchema } from './config.ts';
import { answerFrameworkErrors } from './framework-errors.ts';
import { makeHandler } from './handler.ts';
import { openStores, settingsOf } from './wiring.ts';

const log = makeLog((line) => process.stdout.write(line));
const tools = { clock, ids, log, metrics: logMetrics(log) };
const settings = settingsOf(parseConfig(configSchema, process.env));

const stores = openStores({ ...settings, clock });
const publisher = openPublisher(settings);

answerFrameworkErrors(({ status }, error) => {
  if (status >= 500) log.error('the framework failed', error);
});
http('discovery', toFramework(makeHandler({ ...settings, ...tools, ...stores, publisher }), log));

process.once('SIGTERM', () => {
  void Promise.allSettled([stores.close(), publisher.close()]);
});
