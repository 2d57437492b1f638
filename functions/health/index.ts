import { systemClock as clock } from '#shared/app/clock.ts';
import { parseConfig } from '#shared/app/config.ts';
import { systemIds as ids } from '#shared/app/ids.ts';
import { instrument } from '#shared/app/instrumentation.ts';
import { lazily } from '#shared/app/lazily.ts';
import { closeOpened, onDemand } from '#shared/app/on-demand.ts';
import { serve } from '#shared/app/serve.ts';

import { configSchema } from './config.ts';
import { raise } from './signals.ts';
import { loadTrust } from './trust.ts';

const config = parseConfig(configSchema, process.env);
const projectId = config.GOOGLE_CLOUD_PROJECT;
const write = (line: string): boolean => process.stdout.write(line);
const tools = { clock, ids, ...instrument({ name: 'health', projectId, clock, ids, write }) };
/** A file that is not usable ends the start; the usual authorities can wait. */
const ownTrust = config.PROBE_CA_FILE === undefined ? undefined : loadTrust(config.PROBE_CA_FILE);

const onStuck = (): void => {
  raise(tools, 'FirestoreStuck', 'calls of Firestore hang: ending, so that another instance takes over');
  process.exit(1);
};

const application = lazily(async () => {
  const { openApplication } = await import('./application.ts');
  return openApplication({ config, tools, trust: ownTrust ?? loadTrust(), onStuck });
});
serve('health', onDemand(application), tools.log);

process.once('SIGTERM', () => void closeOpened(application));
