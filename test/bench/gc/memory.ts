/** Memory of the function as it is deployed: the most that its process ever had, over some runs. */

import { readFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { deploy } from '#test/stack/deployments.ts';
import { buildAll } from '#test/tools/build.ts';

import { startListingServer } from './cluster.ts';
import type { GcWorld } from './world.ts';

const RUNS = 5;

const peakMiB = async (pid: number): Promise<number> => {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
};

/** MiB. */
export const measureMemory = async ({ parts }: GcWorld): Promise<number> => {
  await using owner = new AsyncDisposableStack();
  const runDir = await mkdtemp(join(tmpdir(), 'bench-gc-'));
  owner.defer(() => rm(runDir, { recursive: true, force: true }));
  await buildAll();
  const cluster = await startListingServer(runDir, parts.proxies);
  owner.defer(() => cluster.stop());
  const gc = await deploy({
    name: 'gc',
    env: {
      GOOGLE_CLOUD_PROJECT: parts.projectId,
      INSTALLATION_ID: parts.installation,
      PROXY_NAMESPACES: '*',
      COMPUTE_ENDPOINT: parts.cloudUrl,
      FIRESTORE_EMULATOR_HOST: process.env['FIRESTORE_EMULATOR_HOST'] ?? '',
      PUBSUB_EMULATOR_HOST: '127.0.0.1:1',
      METADATA_SERVER_DETECTION: 'none',
      KUBECONFIG: cluster.kubeconfig,
    },
    runDir,
    log: (line) => process.stderr.write(`${line}\n`),
  });
  owner.defer(() => gc.stop());
  for (let run = 0; run < RUNS; run += 1) {
    const answer = await fetch(gc.url, { method: 'POST' });
    const text = await answer.text();
    if (answer.status !== 200) throw new Error(`gc answered ${answer.status}: ${text.slice(0, 500)}`);
  }
  return peakMiB(gc.pid());
};
