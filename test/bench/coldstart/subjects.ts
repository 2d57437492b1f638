/** What is compared: a function that does nothing, and the built ones, each with the services that its first answer needs. */

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';

import { listen } from '#test/stack/listen.ts';
import { startFirestoreEmulator } from '#test/services/emulators.ts';
import { DIST } from '#test/tools/build.ts';

import { statusOf, untilAnswered, type Subject } from './instance.ts';

/** Under the project, so that the framework is found as it is by a deployed bundle. */
const LOCAL = join(import.meta.dirname, '../../../.local');

const EMPTY = `
const { http } = require('@google-cloud/functions-framework');
http('empty', (request, response) => response.status(200).send('ok'));
`;

const COMMON = { GOOGLE_CLOUD_PROJECT: 'bench', INSTALLATION_ID: 'bench', PROXY_NAMESPACES: 'crawlers' };
/** Where nobody listens. */
const AWAY = '127.0.0.1:9';

export interface Subjects {
  readonly empty: Subject;
  readonly discovery: Subject;
  readonly provision: Subject;
  readonly gc: Subject;
  stop(): Promise<void>;
}

export const startSubjects = async (): Promise<Subjects> => {
  await mkdir(LOCAL, { recursive: true });
  const folder = await mkdtemp(join(LOCAL, 'coldstart-'));
  await writeFile(join(folder, 'index.js'), EMPTY);
  await writeFile(join(folder, 'package.json'), '{"type":"commonjs","main":"index.js"}');
  const firestore = await startFirestoreEmulator({ runDir: folder });
  let reached = Promise.withResolvers<void>();
  const compute = await listen(
    createServer((_, response) => {
      reached.resolve();
      response.setHeader('content-type', 'application/json').end('{"items":{}}');
    }),
    '127.0.0.1',
  );
  const env = {
    ...COMMON,
    FIRESTORE_EMULATOR_HOST: firestore.host,
    PUBSUB_EMULATOR_HOST: AWAY,
    COMPUTE_ENDPOINT: `http://127.0.0.1:${compute.port}`,
    CLUSTER_ENDPOINT: `https://${AWAY}`,
  };
  const built = (target: string): Subject => ({ source: join(DIST, target), target, env });
  return {
    empty: { source: folder, target: 'empty', env: {} },
    discovery: { ...built('discovery'), second: (port) => untilAnswered(port, '/v1/proxies') },
    provision: built('provision'),
    gc: {
      ...built('gc'),
      // Its first call is a list of machines. What becomes of the run without a cluster is of no interest.
      second: async (port) => {
        reached = Promise.withResolvers<void>();
        void statusOf(port, 'POST', '/?dryRun=true');
        await reached.promise;
      },
    },
    async stop() {
      await Promise.all([firestore.stop(), compute.stop()]);
      await rm(folder, { recursive: true, force: true });
    },
  };
};
