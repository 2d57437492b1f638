/** What is compared: a function that does nothing, and the built ones, each with the services that its first answer needs. */

import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

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

const COMMON = {
  GOOGLE_CLOUD_PROJECT: 'bench',
  INSTALLATION_ID: 'bench',
  PROXY_NAMESPACES: 'crawlers',
  // There is none here, and looking for it takes as long as all the rest.
  METADATA_SERVER_DETECTION: 'none',
};
/** Where nobody listens. */
const AWAY = '127.0.0.1:9';

export interface Subjects {
  readonly empty: Subject;
  readonly discovery: Subject;
  readonly provision: Subject;
  readonly gc: Subject;
  /** discovery as it is where the platform has not compiled it beforehand. */
  readonly uncompiled: Subject;
  stop(): Promise<void>;
}

/** A copy that has been through what the platform does to it when it builds the image. */
const deployed = async (name: string, folder: string): Promise<string> => {
  const copy = join(folder, name);
  await cp(join(DIST, name), copy, { recursive: true });
  // npm finds this Node.js, and no other, on its path.
  const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}` };
  await promisify(execFile)('npm', ['run', 'gcp-build'], { cwd: copy, env });
  return copy;
};

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
  const built = async (target: string): Promise<Subject> => ({
    source: await deployed(target, folder),
    target,
    env,
  });
  const list = { second: (port: number) => untilAnswered(port, '/v1/proxies') };
  return {
    empty: { source: folder, target: 'empty', env: {} },
    discovery: { ...(await built('discovery')), ...list },
    uncompiled: { source: join(DIST, 'discovery'), target: 'discovery', env, ...list },
    provision: await built('provision'),
    gc: {
      ...(await built('gc')),
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
