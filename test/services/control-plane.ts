/** A real Kubernetes control plane on loopback: etcd, kube-apiserver and kube-controller-manager, RBAC on. */

import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { ensureControlPlane } from '#test/control-plane/build.ts';
import type { Programs } from '#test/setup/locate.mjs';

import { callApi } from './api.ts';
import { kubeconfig, tokenFile, type ClusterUser } from './credentials.ts';
import { claimPort, type PortClaim } from './ports.ts';
import { startProcess, waitUntilReady, type ManagedProcess } from './process.ts';

export type { ClusterUser } from './credentials.ts';

export interface ControlPlaneOptions {
  /** Everything that it writes goes below this folder, which must exist. */
  readonly runDir: string;
  /** Identities beside the administrator's, without any right until RBAC gives them one. */
  readonly users: readonly ClusterUser[];
  readonly log: (line: string) => void;
}

export interface ControlPlane {
  /** `https://127.0.0.1:<port>` */
  readonly server: string;
  /** PEM of the authority that signed the server's certificate. */
  readonly caFile: string;
  /** Path of a kubeconfig for one of `users`; rejects for any other name. */
  kubeconfigFor(user: string): Promise<string>;
  /** Path of a kubeconfig in the group system:masters. */
  readonly adminKubeconfig: string;
  /** Bearer token by user name, the administrator's as `admin`. */
  readonly tokens: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

const ADMIN: ClusterUser = { name: 'admin', groups: ['system:masters'] };
const CONTROLLER_MANAGER: ClusterUser = {
  name: 'system:kube-controller-manager',
  groups: ['system:masters'],
};
const START_MS = 60_000;

interface Layout {
  readonly dir: string;
  readonly programs: Programs;
  readonly tokens: Readonly<Record<string, string>>;
  readonly tokenFile: string;
  readonly keyFile: string;
  readonly certDir: string;
}

const privateFile = (path: string, text: string): string => {
  writeFileSync(path, text, { mode: 0o600 });
  return path;
};

const layOut = (options: ControlPlaneOptions, programs: Programs): Layout => {
  const dir = join(options.runDir, 'control-plane');
  const users = [...options.users, ADMIN, CONTROLLER_MANAGER];
  if (new Set(users.map((user) => user.name)).size < users.length)
    throw new Error('two users have the same name');
  const certDir = join(dir, 'certificates');
  mkdirSync(certDir, { recursive: true, mode: 0o700 });
  const tokens = Object.fromEntries(users.map(({ name }) => [name, randomBytes(24).toString('hex')]));
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    dir,
    programs,
    tokens,
    certDir,
    tokenFile: privateFile(join(dir, 'tokens.csv'), tokenFile(users, tokens)),
    keyFile: privateFile(
      join(dir, 'service-account.pem'),
      privateKey.export({ type: 'sec1', format: 'pem' }).toString(),
    ),
  };
};

const startEtcd = async (layout: Layout, port: number, peerPort: number): Promise<ManagedProcess> => {
  const url = `http://127.0.0.1:${port}`;
  const peer = `http://127.0.0.1:${peerPort}`;
  const etcd = await startProcess({
    name: 'etcd',
    command: layout.programs.etcd,
    args: [
      `--data-dir=${join(layout.dir, 'etcd')}`,
      `--listen-client-urls=${url}`,
      `--advertise-client-urls=${url}`,
      `--listen-peer-urls=${peer}`,
      `--initial-advertise-peer-urls=${peer}`,
      `--initial-cluster=default=${peer}`,
      '--unsafe-no-fsync',
      '--log-level=warn',
    ],
    logFile: join(layout.dir, 'etcd.log'),
  });
  const probe = async (signal: AbortSignal): Promise<boolean> =>
    (await fetch(`${url}/readyz`, { signal })).ok;
  await waitUntilReady(etcd, { probe, timeoutMs: START_MS });
  return etcd;
};

const certificate = (layout: Layout): string => join(layout.certDir, 'apiserver.crt');

/** True when the administrator's GET of this path succeeds. */
const answers =
  (layout: Layout, port: number, path: string) =>
  async (signal: AbortSignal): Promise<boolean> => {
    const token = layout.tokens[ADMIN.name] ?? '';
    const api = { server: `https://127.0.0.1:${port}`, caFile: certificate(layout), token };
    return (await callApi(api, path, { signal })).status === 200;
  };

const startApiServer = async (layout: Layout, port: number, etcdPort: number): Promise<ManagedProcess> => {
  const server = await startProcess({
    name: 'kube-apiserver',
    command: layout.programs['kube-apiserver'],
    args: [
      `--etcd-servers=http://127.0.0.1:${etcdPort}`,
      '--bind-address=127.0.0.1',
      `--secure-port=${port}`,
      `--cert-dir=${layout.certDir}`,
      '--authorization-mode=RBAC',
      `--token-auth-file=${layout.tokenFile}`,
      `--service-account-issuer=https://127.0.0.1:${port}`,
      `--service-account-key-file=${layout.keyFile}`,
      `--service-account-signing-key-file=${layout.keyFile}`,
      '--service-cluster-ip-range=10.0.0.0/24',
      // Pods here need no token of their own, and the admission plugin would refuse them until one exists.
      '--disable-admission-plugins=ServiceAccount',
    ],
    logFile: join(layout.dir, 'kube-apiserver.log'),
  });
  await waitUntilReady(server, { probe: answers(layout, port, '/readyz'), timeoutMs: START_MS });
  return server;
};

const startControllerManager = async (
  layout: Layout,
  port: number,
  config: string,
): Promise<ManagedProcess> => {
  const manager = await startProcess({
    name: 'kube-controller-manager',
    command: layout.programs['kube-controller-manager'],
    args: [
      `--kubeconfig=${config}`,
      '--controllers=garbagecollector,namespace,serviceaccount-token,serviceaccount',
      `--service-account-private-key-file=${layout.keyFile}`,
      `--root-ca-file=${certificate(layout)}`,
      '--leader-elect=false',
      '--secure-port=0',
    ],
    logFile: join(layout.dir, 'kube-controller-manager.log'),
  });
  // Its own work is the sign that it is at work: every namespace gets a service account.
  const account = '/api/v1/namespaces/default/serviceaccounts/default';
  await waitUntilReady(manager, { probe: answers(layout, port, account), timeoutMs: START_MS });
  return manager;
};

interface Running {
  readonly processes: ManagedProcess[];
  readonly ports: PortClaim[];
}

/** Nothing of it is kept, so that a server that still waits for its clients is not waited for. */
const STOP_MS = 3_000;

/** The store goes last: without it the others do not end by themselves. */
const stopAll = async ({ processes: [etcd, ...others], ports }: Running): Promise<void> => {
  await Promise.all(others.map((child) => child.stop(STOP_MS)));
  await etcd?.stop(STOP_MS);
  await Promise.all(ports.map((port) => port.release()));
};

const start = async (options: ControlPlaneOptions, running: Running): Promise<Omit<ControlPlane, 'stop'>> => {
  const layout = layOut(options, await ensureControlPlane(process.env, options.log));
  const [port, etcdPort, peerPort] = await Promise.all([claimPort(), claimPort(), claimPort()]);
  running.ports.push(port, etcdPort, peerPort);
  running.processes.push(await startEtcd(layout, etcdPort.port, peerPort.port));
  running.processes.push(await startApiServer(layout, port.port, etcdPort.port));
  const server = `https://127.0.0.1:${port.port}`;
  const ca = readFileSync(certificate(layout), 'utf8');
  const write = (user: string): string => {
    const token = layout.tokens[user];
    if (token === undefined) throw new Error(`the control plane was started without a user ${user}`);
    const file = `kubeconfig-${user.replaceAll(/[^\w.-]/gu, '-')}.yaml`;
    return privateFile(join(layout.dir, file), kubeconfig({ server, ca, user, token }));
  };
  running.processes.push(await startControllerManager(layout, port.port, write(CONTROLLER_MANAGER.name)));
  return {
    server,
    caFile: certificate(layout),
    kubeconfigFor: async (user) => Promise.resolve(write(user)),
    adminKubeconfig: write(ADMIN.name),
    tokens: layout.tokens,
  };
};

/** Starts it and waits until it serves and its controllers work; on failure nothing is left running. */
export const startControlPlane = async (options: ControlPlaneOptions): Promise<ControlPlane> => {
  const running: Running = { processes: [], ports: [] };
  try {
    const controlPlane = await start(options, running);
    return { ...controlPlane, stop: () => stopAll(running) };
  } catch (error) {
    await stopAll(running);
    throw error;
  }
};
