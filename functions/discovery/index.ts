import { systemClock as clock } from '#shared/app/clock.ts';
import { parseConfig } from '#shared/app/config.ts';
import { systemIds as ids } from '#shared/app/ids.ts';
import { instrument } from '#shared/app/instrumentation.ts';
import { lazily } from '#shared/app/lazily.ts';
import { closeOpened, onDemand } from '#shared/app/on-demand.ts';
import { identified, requestScope } from '#shared/app/request-id.ts';
import { serve } from '#shared/app/serve.ts';

import { configSchema, settingsOf } from './config.ts';

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

const application = lazily(async () => {
  const { openApplication } = await import('./application.ts');
  return openApplication({ ...settings, ...tools, traceparent: scope.traceparent, onStuck });
});
serve('discovery', identified(onDemand(application), { ...settings, ...tools, scope }), log);

process.once('SIGTERM', () => void closeOpened(application));
