/** The clients of Compute Engine: loaded at the first call, a deadline on each call, errors of ours. */

import type { DisksClient } from '@google-cloud/compute/build/src/v1/disks_client.js';
import type { InstancesClient } from '@google-cloud/compute/build/src/v1/instances_client.js';
import type { ZoneOperationsClient } from '@google-cloud/compute/build/src/v1/zone_operations_client.js';

import { SystemError } from '#shared/app/errors.ts';
import { lazily } from '#shared/app/lazily.ts';
import { pause } from '#shared/app/wait.ts';

import { toSystemError } from './errors.ts';

export interface Clients {
  readonly instances: InstancesClient;
  readonly operations: ZoneOperationsClient;
}

export interface LazyClients {
  /** Runs one call; `name` is its method's, for the error. Throws `SystemError`. */
  call<T>(name: string, work: (clients: Clients) => Promise<T>): Promise<T>;
  /** The same for disks, whose client is loaded only where it is needed. */
  callDisks<T>(name: string, work: (disks: DisksClient) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

const DEADLINE_MS = 20_000;
/** Above the library's own, which does not cover fetching a token. */
const HARD_DEADLINE_MS = DEADLINE_MS + 5_000;

/** No retries inside the library: by default they go on for ten minutes, and the caller knows better. */
export const callOptions = (): { timeout: number; retry: null; autoPaginate: false } => ({
  timeout: DEADLINE_MS,
  retry: null,
  autoPaginate: false,
});

const standInOptions = async (endpoint: string) => {
  const { OAuth2Client } = await import('google-auth-library');
  const url = new URL(endpoint);
  const authClient = new OAuth2Client();
  authClient.setCredentials({ access_token: 'stand-in' });
  return {
    apiEndpoint: url.hostname,
    port: Number(url.port === '' ? 80 : url.port),
    protocol: 'http',
    fallback: true,
    authClient,
  };
};

const withDeadline = async <T>(name: string, work: Promise<T>): Promise<T> => {
  const done = new AbortController();
  const expire = async (): Promise<never> => {
    await pause(HARD_DEADLINE_MS, done.signal);
    throw new SystemError('Transient', `Compute Engine ${name} did not answer in ${HARD_DEADLINE_MS} ms.`);
  };
  try {
    return await Promise.race([work, expire()]);
  } finally {
    done.abort();
  }
};

const clientOptions = async (endpoint: string | undefined) =>
  endpoint === undefined ? { fallback: true } : standInOptions(endpoint);

/** Importing the package whole costs seconds and hundreds of megabytes: two of its files are loaded. */
const openClients = async (endpoint: string | undefined): Promise<Clients> => {
  const [instances, operations] = await Promise.all([
    import('@google-cloud/compute/build/src/v1/instances_client.js'),
    import('@google-cloud/compute/build/src/v1/zone_operations_client.js'),
  ]);
  const options = await clientOptions(endpoint);
  const clients = {
    instances: new instances.InstancesClient(options),
    operations: new operations.ZoneOperationsClient(options),
  };
  // Done here, where a failure can be told; the library itself would leave it unhandled.
  const ready = Promise.all([clients.instances.initialize(), clients.operations.initialize()]);
  await withDeadline('sign-in', ready);
  return clients;
};

const openDisks = async (endpoint: string | undefined): Promise<DisksClient> => {
  const { DisksClient: Client } = await import('@google-cloud/compute/build/src/v1/disks_client.js');
  const disks = new Client(await clientOptions(endpoint));
  await withDeadline('sign-in', disks.initialize());
  return disks;
};

const callWith = async <C, T>(
  name: string,
  open: () => Promise<C>,
  work: (opened: C) => Promise<T>,
): Promise<T> => {
  try {
    // Loading the library can take longer than a call may: its time does not count.
    const opened = await open();
    return await withDeadline(name, work(opened));
  } catch (error) {
    throw toSystemError(error, name);
  }
};

/** Clients for a stand-in at `endpoint` (`http://host:port`), or for the real API with the platform's credentials. */
export const lazyClients = (endpoint: string | undefined): LazyClients => {
  const usual = lazily(() => openClients(endpoint));
  const disks = lazily(() => openDisks(endpoint));
  return {
    call: (name, work) => callWith(name, usual.get, work),
    callDisks: (name, work) => callWith(name, disks.get, work),
    close: async () => {
      const [clients, disksClient] = await Promise.all([usual.opened(), disks.opened()]);
      await Promise.all([clients?.instances.close(), clients?.operations.close(), disksClient?.close()]);
    },
  };
};
