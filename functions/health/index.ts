import { http } from '@google-cloud/functions-framework';

import { systemClock as clock } from '#shared/app/clock.ts';
import { parseConfig } from '#shared/app/config.ts';
import { toFramework } from '#shared/app/http.ts';
import { systemIds as ids } from '#shared/app/ids.ts';
import { makeLog } from '#shared/app/log.ts';
import { logMetrics } from '#shared/app/metrics.ts';
import { openFirestore } from '#shared/firestore/client.ts';
import { credentialStore } from '#shared/firestore/credentials.ts';
import { recordStore } from '#shared/firestore/records.ts';
import { roundStore } from '#shared/firestore/rounds.ts';
import { openPublisher } from '#shared/pubsub/publisher.ts';

import { configSchema } from './config.ts';
import { makeHandler } from './handler.ts';
import { makeProber } from './probe/prober.ts';
import { loadTrust } from './trust.ts';

const config = parseConfig(configSchema, process.env);
const log = makeLog((line) => process.stdout.write(line), { function: 'health' });
const { GOOGLE_CLOUD_PROJECT: projectId, PROXY_CHANGES_TOPIC: changesTopic } = config;
const prober = makeProber(loadTrust(config.PROBE_CA_FILE), ids);
const db = openFirestore({ projectId, databaseId: config.FIRESTORE_DATABASE });
const secrets = openFirestore({ projectId, databaseId: config.CREDENTIALS_DATABASE });
const publisher = openPublisher({ projectId, changesTopic });
const stores = { records: recordStore(db), rounds: roundStore(db), credentials: credentialStore(secrets) };
const tools = { clock, ids, log, metrics: logMetrics(log) };
const settings = { installation: config.INSTALLATION_ID, target: config.PROBE_TARGET_URL };

http('health', toFramework(makeHandler({ ...tools, ...settings, ...stores, prober, publisher }), log));

process.once('SIGTERM', () => {
  void Promise.allSettled([db.terminate(), secrets.terminate(), publisher.close()]);
});
