/** Pods as a provider of machines. A Pod's place is its namespace: the one of its Proxy. */

import type { Clock } from '#shared/app/clock.ts';
import { SystemError, type ErrorCode } from '#shared/app/errors.ts';
import type { Log } from '#shared/app/log.ts';
import type { FleetListing, Machine, MachineProvider, MachineSpec } from '#shared/domain/machine.ts';

import type { Connection } from '../connection.ts';
import { errorOfReply, saysAbsent, type ApiReply } from '../failure.ts';
import { ALL_NAMESPACES, listAll } from '../pages.ts';
import { parseReply } from '../schema.ts';
import { readSecret } from '../secrets.ts';
import { toMachine } from './machine.ts';
import { REQUEST_ANNOTATION, mountedSecret, podBody, secretBody } from './request.ts';
import { machinePods, podPath, podSchema, podsPath, type PodObject } from './schema.ts';

export interface PodProviderOptions {
  /** Whose Pods these are; every Pod carries it, every list asks for it. */
  readonly installation: string;
  /** Where the installation's Proxies are: namespaces, or `*`. */
  readonly namespaces: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
}

/** The Secret of a Pod follows it within moments, or never. */
const SECRET_WITHIN_MS = 30_000;

const succeeded = ({ status }: ApiReply): boolean => status >= 200 && status < 300;

/** What 403 Forbidden means, by its text; the first that fits. A rule of admission that nobody here knows comes last. */
const FORBIDDEN: readonly (readonly [text: RegExp, code: ErrorCode])[] = [
  [/ cannot \w+ resource /u, 'Unauthorised'],
  [/exceeded quota/u, 'QuotaExceeded'],
  // The quota was made a moment ago, the namespace or its account is: they come to be, or the Proxy goes too.
  [/status unknown for quota|because it is being terminated|error looking up service account/u, 'Transient'],
  [/./u, 'InvalidSpec'],
];

/** A refusal as one of ours: what the API server forbids is not always a matter of rights. */
const refusalOf = (what: string, reply: ApiReply, name: string): SystemError => {
  const error = errorOfReply(what, reply, name);
  const { provider } = error;
  if (reply.status !== 403 || provider?.code !== 'Forbidden') return error;
  const code = FORBIDDEN.find(([text]) => text.test(provider.message))?.[1] ?? error.code;
  return new SystemError(code, error.message, { provider });
};

const readPod = async (
  connection: Connection,
  namespace: string,
  name: string,
): Promise<PodObject | undefined> => {
  const what = `get of Pod ${namespace}/${name}`;
  const reply = await connection.send({ method: 'GET', path: podPath(namespace, name) });
  if (saysAbsent(reply, name)) return undefined;
  if (!succeeded(reply)) throw refusalOf(what, reply, name);
  return parseReply(what, podSchema, reply.text);
};

/** False when this very Pod is not there any more. */
const deletePod = async (
  connection: Connection,
  { namespace, name, uid }: { readonly namespace: string; readonly name: string; readonly uid: string },
): Promise<boolean> => {
  const what = `delete of Pod ${namespace}/${name}`;
  const reply = await connection.send({
    method: 'DELETE',
    path: podPath(namespace, name),
    // A name is not a Pod: what bears it now may be another one.
    body: { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid } },
  });
  if (succeeded(reply)) return true;
  if (saysAbsent(reply, name)) return false;
  const error = refusalOf(what, reply, name);
  if (error.code !== 'Conflict') throw error;
  const current = await readPod(connection, namespace, name);
  if (current?.metadata.uid === uid) throw error;
  return false;
};

/** The Pod of this very request, made now or by an earlier attempt. Throws `Conflict` for any other of that name. */
const createPod = async (
  connection: Connection,
  spec: MachineSpec,
  installation: string,
  requestId: string,
): Promise<PodObject> => {
  const { namespace } = spec.ref;
  const what = `create of Pod ${namespace}/${spec.name}`;
  const body = podBody(spec, installation, requestId);
  const reply = await connection.send({ method: 'POST', path: podsPath(namespace), body });
  if (succeeded(reply)) return parseReply(what, podSchema, reply.text);
  const error = refusalOf(what, reply, spec.name);
  if (error.code !== 'Conflict') throw error;
  const existing = await readPod(connection, namespace, spec.name);
  if (existing?.metadata.annotations?.[REQUEST_ANNOTATION] !== requestId) throw error;
  return existing;
};

/** Its Secret comes after the Pod, since it goes with it: the Pod owns it, and waits for it with its mount. */
const createSecret = async (
  connection: Connection,
  spec: MachineSpec,
  installation: string,
  { metadata }: PodObject,
): Promise<void> => {
  const body = secretBody(spec, installation, metadata);
  if (!body) return;
  const { namespace } = spec.ref;
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/secrets`;
  const reply = await connection.send({ method: 'POST', path, body });
  if (!succeeded(reply)) throw refusalOf(`create of Secret ${namespace}/${spec.name}`, reply, spec.name);
};

/** A crash between Pod and Secret leaves a Pod that would wait for ever: it is given up after a while. */
const judged = async (connection: Connection, pod: PodObject, now: number): Promise<Machine> => {
  const machine = toMachine(pod);
  const secret = mountedSecret(pod.spec.volumes);
  if (machine.state !== 'creating' || secret === undefined) return machine;
  const { kind } = await readSecret(connection, machine.zone, secret);
  if (kind !== 'missing') return machine;
  const isLate = now - (machine.createdAt ?? Infinity) > SECRET_WITHIN_MS;
  return {
    ...machine,
    state: isLate ? 'failed' : 'creating',
    detail: `SecretMissing: Secret ${secret}, which the Pod mounts, does not exist${isLate ? '' : ' yet'}`,
  };
};

const create = async (
  connection: Connection,
  spec: MachineSpec,
  requestId: string,
  { installation, log }: PodProviderOptions,
): Promise<void> => {
  const pod = await createPod(connection, spec, installation, requestId);
  try {
    await createSecret(connection, spec, installation, pod);
  } catch (error) {
    const { namespace, name, uid } = pod.metadata;
    await deletePod(connection, { namespace, name, uid }).catch((cause: unknown) =>
      log.error('a Pod without its Secret could not be deleted', cause, { namespace, name }),
    );
    throw error;
  }
};

/** Undefined when they could not be listed: that is not "none". */
const listOne = async (
  connection: Connection,
  namespace: string,
  uid: string | undefined,
  { installation, log }: PodProviderOptions,
): Promise<readonly Machine[] | undefined> => {
  try {
    const { items } = await listAll(connection, machinePods(installation, uid), namespace);
    return items.map(toMachine).filter((machine) => machine.installation === installation);
  } catch (error) {
    log.error('Pods could not be listed', error, { namespace });
    return undefined;
  }
};

const list = async (
  connection: Connection,
  uid: string | undefined,
  options: PodProviderOptions,
): Promise<FleetListing> => {
  const namespaces = [...new Set(options.namespaces)];
  const lists = await Promise.all(
    namespaces.map((namespace) => listOne(connection, namespace, uid, options)),
  );
  const unknown = namespaces.filter((_, index) => lists[index] === undefined);
  return {
    machines: lists.flatMap((machines) => machines ?? []),
    unknownZones: unknown.filter((namespace) => namespace !== ALL_NAMESPACES),
    partial: unknown.includes(ALL_NAMESPACES),
  };
};

/**
 * Pods as machines, over `connection`. Neither creation nor deletion is an operation of its own here: a call that is
 * accepted has ended, and the state of the Pod tells the rest.
 */
export const openPodProvider = (options: PodProviderOptions, connection: Connection): MachineProvider => ({
  name: 'kubernetes',
  async get(name, zone) {
    const pod = await readPod(connection, zone, name);
    return pod && judged(connection, pod, options.clock.now());
  },
  async create(spec, zone, requestId) {
    await create(connection, spec, requestId, options);
    return { zone, name: `create-${requestId}` };
  },
  async delete({ name, zone, instanceId }) {
    const deleted = await deletePod(connection, { namespace: zone, name, uid: instanceId });
    return deleted ? { zone, name: `delete-${instanceId}` } : undefined;
  },
  // What a Pod mounts is owned by it: the cluster takes it away.
  leftover: () => Promise.resolve(undefined),
  deleteLeftover: () => Promise.resolve(undefined),
  start: () => Promise.reject(new SystemError('InvalidSpec', 'A Pod that has ended is not started again.')),
  async wait(_, signal) {
    await Promise.resolve();
    return { kind: signal.aborted ? 'running' : 'succeeded' };
  },
  list: (uid) => list(connection, uid, options),
  listLeftovers: () => Promise.resolve({ leftovers: [], unknownZones: [], partial: false }),
  close: () => connection.close(),
});
