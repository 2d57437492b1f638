import { systemClock as clock } from '#shared/app/clock.ts';
import { parseConfig } from '#shared/app/config.ts';
import { systemIds as ids } from '#shared/app/ids.ts';
import { instrument } from '#shared/app/instrumentation.ts';
import { serve } from '#shared/app/serve.ts';
import { openPublisher } from '#shared/pubsub/publisher.ts';

import { configSchema, settingsOf } from './config.ts';
import { makeHandler } from './handler.ts';
import { fetchGoogleIdToken, makeIdTokens } from './probe/id-tokens.ts';
import { makeProber } from './probe/prober.ts';
import { raise } from './signals.ts';
import { loadTrust } from './trust.ts';
import { openStores } from './wiring.ts';

const config = parseConfig(configSchema, process.env);
const projectId = config.GOOGLE_CLOUD_PROJECT;
const write = (line: string): boolean => process.stdout.write(line);
const tools = { clock, ids, ...instrument({ name: 'health', projectId, clock, ids, write }) };
const prober = makeProber(loadTrust(config.PROBE_CA_FILE), ids, makeIdTokens(fetchGoogleIdToken, clock));
const publisher = openPublisher({
  projectId,
  changesTopic: config.PROXY_CHANGES_TOPIC,
  traceparent: tools.tracing.traceparent,
});
const { stores, close } = openStores(config, () => {
  raise(tools, 'FirestoreStuck', 'calls of Firestore hang: ending, so that another instance takes over');
  process.exit(1);
});
const handler = makeHandler({ ...tools, ...settingsOf(config), ...stores, prober, publisher });

serve('health', handler, tools.log);

process.once('SIGTERM', () => {
  void Promise.allSettled([close(), publisher.close()]);
});
