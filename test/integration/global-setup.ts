/** One control plane and one of each emulator for the whole integration run. */

import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import type { TestProject } from 'vitest/node';

import { openFirestore } from '#shared/firestore/client.ts';
import { applyFile } from '#test/services/apply.ts';
import { startControlPlane, type ControlPlane } from '#test/services/control-plane.ts';
import { startFirestoreEmulator, startPubsubEmulator } from '#test/services/emulators.ts';
import { startTogether, stopTogether } from '#test/services/together.ts';

import { FUNCTION_IDENTITIES, type Identity, type ProvidedCluster } from './provided.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const MANIFESTS = ['crds/proxy.yaml', 'terraform/cluster/rbac.yaml'];

const makeRunDir = (): string => {
  const parent = join(ROOT, '.local', 'run');
  mkdirSync(parent, { recursive: true });
  return mkdtempSync(join(parent, 'integration-'));
};

const forEachIdentity = async <T>(
  value: (identity: Identity) => Promise<T>,
): Promise<Record<Identity, T>> => ({
  admin: await value('admin'),
  watcher: await value('watcher'),
  provision: await value('provision'),
  health: await value('health'),
  discovery: await value('discovery'),
  gc: await value('gc'),
});

const cluster = async (plane: ControlPlane): Promise<ProvidedCluster> => ({
  server: plane.server,
  caFile: plane.caFile,
  kubeconfigs: await forEachIdentity((identity) =>
    identity === 'admin' ? Promise.resolve(plane.adminKubeconfig) : plane.kubeconfigFor(identity),
  ),
  tokens: await forEachIdentity((identity) => Promise.resolve(plane.tokens[identity] ?? '')),
});

const applyAll = async (plane: ControlPlane): Promise<void> => {
  const api = { server: plane.server, caFile: plane.caFile, token: plane.tokens['admin'] ?? '' };
  for (const file of MANIFESTS.map((path) => join(ROOT, path))) {
    if (existsSync(file)) await applyFile(api, file);
  }
};

const startAll = (runDir: string) =>
  startTogether([
    startControlPlane({ runDir, users: FUNCTION_IDENTITIES.map((name) => ({ name })), log: console.log }),
    startFirestoreEmulator({ runDir }),
    startPubsubEmulator({ runDir }),
  ]);

/** An emulator's first write takes many seconds on a busy machine: longer than any call of ours may. */
const warmUp = async (host: string): Promise<void> => {
  process.env['FIRESTORE_EMULATOR_HOST'] = host;
  const db = openFirestore({ projectId: 'warm-up' });
  const { id } = await db.collection('warm-up').add({ at: 1 });
  await db.collection('warm-up').doc(id).update({ at: 2 });
  await db.terminate();
};

/** Vitest calls it before the first integration test and the function that it returns after the last. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const runDir = makeRunDir();
  const discard = (): void => rmSync(runDir, { recursive: true, force: true });
  // An interrupted run ends without the function below.
  process.once('exit', discard);
  const services = await startAll(runDir);
  const [plane, firestore, pubsub] = services;
  const tearDown = async (): Promise<void> => {
    await stopTogether(services);
    discard();
  };
  try {
    await Promise.all([applyAll(plane), warmUp(firestore.host)]);
    project.provide('cluster', await cluster(plane));
    project.provide('emulators', { firestore: firestore.host, pubsub: pubsub.host });
  } catch (error) {
    await tearDown();
    throw error;
  }
  return tearDown;
}
