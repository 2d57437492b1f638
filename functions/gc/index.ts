import { systemClock as clock } from '#shared/app/clock.ts';
import { parseConfig } from '#shared/app/config.ts';
import { systemIds as ids } from '#shared/app/ids.ts';
import { instrument } from '#shared/app/instrumentation.ts';
import { lazily } from '#shared/app/lazily.ts';
import { closeOpened, onDemand } from '#shared/app/on-demand.ts';
import { serve } from '#shared/app/serve.ts';
import { checkedClusterOptions } from '#shared/kubernetes/options.ts';

import { configSchema, settingsOf } from './config.ts';

const config = parseConfig(configSchema, process.env);
const settings = {
  ...settingsOf(config),
  clusterOptions: checkedClusterOptions(config),
  providerNames: config.PROVIDERS,
};
const write = (line: string): boolean => process.stdout.write(line);
const tools = { clock, ids, ...instrument({ ...settings, name: 'gc', clock, ids, write }) };

const application = lazily(async () => {
  const { openApplication } = await import('./application.ts');
  return openApplication({ ...settings, ...tools });
});
serve('gc', onDemand(application), tools.log);

process.once('SIGTERM', () => void closeOpened(application));
