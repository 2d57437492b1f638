import { systemClock as clock } from '#shared/app/clock.ts';
import { parseConfig } from '#shared/app/config.ts';
import { systemIds as ids } from '#shared/app/ids.ts';
import { instrument } from '#shared/app/instrumentation.ts';
import { identified, requestScope } from '#shared/app/request-id.ts';
import { serve } from '#shared/app/serve.ts';
import { openPublisher } from '#shared/pubsub/publisher.ts';

import { configSchema } from './config.ts';
import { makeHandler } from './handler.ts';
import { openStores, settingsOf } from './wiring.ts';

const scope = requestScope();
const settings = settingsOf(parseConfig(configSchema, process.env));
const write = (line: string): boolean => process.stdout.write(line);
const { log, metrics } = instrument({
  ...settings,
  name: 'discovery',
  clock,
  ids,
  write,
  scope: scope.fields,
});
const tools = { clock, ids, log, metrics };

/** What waits is answered first: its own deadline has just ended, too. */
const LAST_ANSWERS_MS = 1_000;
const onStuck = (): void => {
  log.warning('calls of Firestore hang: ending, so that another instance takes over', {
    alert: 'FirestoreStuck',
  });
  setTimeout(() => process.exit(1), LAST_ANSWERS_MS);
};
const stores = openStores({ ...settings, clock, onStuck });
const publisher = openPublisher(settings);

const handler = makeHandler({ ...settings, ...tools, ...stores, publisher });
serve('discovery', identified(handler, { ...settings, ...tools, scope }), log);

process.once('SIGTERM', () => {
  void Promise.allSettled([stores.close(), publisher.close()]);
});
