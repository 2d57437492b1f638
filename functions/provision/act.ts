/** Carries out a plan, step by step, in its order. Each step can be repeated; the first one that fails ends the pass. */

import type { Clock } from '#shared/app/clock.ts';
import { SystemError, type ErrorCode } from '#shared/app/errors.ts';
import type { Ids } from '#shared/app/ids.ts';
import type { Log } from '#shared/app/log.ts';
import type { Tracing } from '#shared/app/tracing.ts';
import { CONDITION_REASONS } from '#shared/domain/conditions.ts';
import type { MachineProvider, MachineSpec, OperationRef } from '#shared/domain/machine.ts';

import { FINALIZER } from '#shared/domain/proxy.ts';
import type { ProxyRecord } from '#shared/domain/record.ts';
import type { CredentialStore } from '#shared/firestore/credentials.ts';
import type { RecordStore, StoredRecord, Version } from '#shared/firestore/records.ts';
import type { Cluster, ProxyObject } from '#shared/kubernetes/cluster.ts';
import type { Publisher } from '#shared/pubsub/publisher.ts';

import { noteRefusal, placeKey, type Memory } from './memory.ts';
import type { Sight } from './observe.ts';
import type { Plan, Refusal, Status, Step } from './plan.ts';
import { RESEND_MS } from './tidy.ts';

export interface Effects {
  readonly cluster: Pick<Cluster, 'setFinalizers' | 'patchStatus' | 'recordEvent'>;
  readonly records: Pick<RecordStore, 'create' | 'write' | 'removeLeases'>;
  readonly credentials: Pick<CredentialStore, 'create' | 'remove'>;
  readonly publisher: Pick<Publisher, 'probe'>;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly tracing?: Tracing;
}

/** What changes while the steps of one plan are carried out. */
interface Pass {
  readonly effects: Effects;
  readonly sight: Sight;
  readonly memory: Memory;
  proxy: ProxyObject | undefined;
  version: Version | undefined;
  record: ProxyRecord | undefined;
}

/** The Proxy and its record as a plan left them. */
export interface Left {
  readonly proxy: ProxyObject;
  readonly stored: StoredRecord | undefined;
}

const leftBy = ({ proxy, record, version, sight }: Pass): Left | undefined => {
  if (!proxy) return undefined;
  if (!record || !version) return { proxy, stored: undefined };
  const readTime = version === sight.stored?.version ? sight.stored.readTime : version.updateTime.toMillis();
  return { proxy, stored: { record, version, readTime } };
};

const proxyOf = ({ proxy }: Pass): ProxyObject => {
  if (!proxy) throw new SystemError('NotFound', 'The Proxy is gone');
  return proxy;
};

const providerOf = ({ sight }: Pass): MachineProvider => {
  if (!sight.provider) throw new SystemError('NotConfigured', 'The provider is not configured');
  return sight.provider;
};

/** Who goes on with an unfinished change later goes on in its trace; a finished one has none. */
const traced = (
  { traceparent: before, ...record }: ProxyRecord,
  tracing: Tracing | undefined,
): ProxyRecord => {
  const traceparent = record.wakeAt === undefined ? undefined : (tracing?.traceparent() ?? before);
  return traceparent === undefined ? record : { ...record, traceparent };
};

const saveRecord = async (pass: Pass, decided: ProxyRecord): Promise<void> => {
  const { records, tracing } = pass.effects;
  const record = traced(decided, tracing);
  pass.version = pass.version ? await records.write(record, pass.version) : await records.create(record);
  const known = new Set(
    (pass.record?.machines ?? []).flatMap(({ name, zones }) => zones.map((zone) => placeKey(zone, name))),
  );
  const unseen = record.machines.filter(({ instanceId }) => instanceId === undefined);
  for (const { name, zones } of unseen)
    for (const zone of zones)
      if (!known.has(placeKey(zone, name))) pass.memory.untouched.add(placeKey(zone, name));
  pass.record = record;
};

const setFinalizer = async (pass: Pass, wanted: boolean): Promise<void> => {
  const proxy = proxyOf(pass);
  const others = (proxy.metadata.finalizers ?? []).filter((each) => each !== FINALIZER);
  const finalizers = wanted ? [...others, FINALIZER] : others;
  pass.proxy = await pass.effects.cluster.setFinalizers(proxy, finalizers);
};

const specOf = ({ sight }: Pass, name: string, hash: string): MachineSpec => {
  const { observation, material } = sight;
  const template = observation.proxy?.desired.machine;
  if (!template) throw new SystemError('NotFound', 'The Proxy is gone');
  return {
    ref: observation.ref,
    name,
    hash,
    port: template.port,
    ...material,
    ...(template.gcp ? { gcp: template.gcp } : {}),
    ...(template.kubernetes ? { kubernetes: template.kubernetes } : {}),
  };
};

/** What is not here is an outage: it throws. */
const BEHAVIOURS: Readonly<Partial<Record<ErrorCode, Refusal['behaviour']>>> = {
  CapacityUnavailable: 'CapacityUnavailable',
  QuotaExceeded: 'QuotaExceeded',
  InvalidSpec: 'InvalidSpec',
  Conflict: 'Conflict',
  Unauthorised: 'Unauthorised',
  NotConfigured: 'Unauthorised',
  // Something that the call refers to does not exist: a subnetwork, an image.
  NotFound: 'InvalidSpec',
};

type Ask = Pick<Refusal, 'kind' | 'machine' | 'zone' | 'leftNothing'>;

/** Asks the provider. A refusal is remembered for the next decision; an outage throws. `nothing`: no operation followed. */
const ask = async (
  { memory }: Pass,
  what: Ask,
  call: () => Promise<OperationRef | undefined>,
): Promise<'begun' | 'nothing' | 'refused'> => {
  try {
    const operation = await call();
    const { kind, machine } = what;
    if (!operation) return 'nothing';
    memory.pending.set(operation.name, { kind, machine, operation });
    return 'begun';
  } catch (error) {
    if (!(error instanceof SystemError)) throw error;
    const behaviour = BEHAVIOURS[error.code];
    if (!behaviour) throw error;
    const { code, message } = error.provider ?? error;
    noteRefusal(memory, { ...what, behaviour, code, message });
    return 'refused';
  }
};

const createMachine = async (
  pass: Pass,
  { name, hash, zone }: Extract<Step, { kind: 'createMachine' }>,
): Promise<void> => {
  const provider = providerOf(pass);
  const spec = specOf(pass, name, hash);
  // Before the call: whatever becomes of it, from now on something may be there.
  const leftNothing = pass.memory.untouched.delete(placeKey(zone, name));
  await ask(pass, { kind: 'create', machine: name, zone, leftNothing }, () =>
    provider.create(spec, zone, pass.effects.ids.uuid()),
  );
};

const SEEN_AGAIN_MS = 10_000;

/** A machine, or what it left behind; `id` is the provider's. */
const remove = async (
  pass: Pass,
  { name, zone, id }: { readonly name: string; readonly zone: string; readonly id: string },
  call: () => Promise<OperationRef | undefined>,
): Promise<void> => {
  const answer = await ask(pass, { kind: 'delete', machine: name, zone }, call);
  if (answer === 'refused') return;
  // Said to be gone already: where it is seen all the same, it is told again soon, and not only when it is late.
  const early = answer === 'nothing' ? RESEND_MS - SEEN_AGAIN_MS : 0;
  pass.memory.deletesSent.set(id, { machine: name, at: pass.sight.now - early });
};

const storeCredentials = async (pass: Pass, endpointId: string): Promise<void> => {
  const { credentials } = pass.sight.material;
  if (!credentials) throw new SystemError('Conflict', 'The credentials have changed');
  await pass.effects.credentials.create(endpointId, { uid: pass.sight.observation.ref.uid, ...credentials });
};

const perform = async (pass: Pass, step: Step): Promise<void> => {
  const { effects } = pass;
  switch (step.kind) {
    case 'addFinalizer':
      return setFinalizer(pass, true);
    case 'removeFinalizer':
      return setFinalizer(pass, false);
    case 'writeRecord':
      return saveRecord(pass, step.record);
    case 'storeCredentials':
      return storeCredentials(pass, step.endpointId);
    case 'removeLeases':
      return effects.records.removeLeases(pass.sight.observation.ref.uid);
    case 'removeCredentials':
      await Promise.all(step.endpointIds.map((id) => effects.credentials.remove(id)));
      return undefined;
    case 'createMachine':
      return createMachine(pass, step);
    case 'deleteMachine': {
      const { machine } = step;
      return remove(pass, { ...machine, id: machine.instanceId }, () => providerOf(pass).delete(machine));
    }
    case 'deleteLeftover':
      return remove(pass, step.leftover, () => providerOf(pass).deleteLeftover(step.leftover));
    case 'startMachine': {
      const { name, zone } = step.machine;
      await ask(pass, { kind: 'start', machine: name, zone }, () => providerOf(pass).start(step.machine));
      return undefined;
    }
    case 'requestProbe':
      return effects.publisher.probe({ uid: pass.sight.observation.ref.uid, reason: 'published' });
    default:
      return step satisfies never;
  }
};

/** Conditions of other controllers stay as they are. */
const withForeign = (status: Status, proxy: ProxyObject): NonNullable<ProxyObject['status']> => {
  const foreign = (proxy.status?.conditions ?? []).filter(({ type }) => !(type in CONDITION_REASONS));
  return foreign.length === 0
    ? status
    : { ...status, conditions: [...(status.conditions ?? []), ...foreign] };
};

/**
 * Carries out `plan`, the status patch last, and tells what it left. Throws `Conflict` or `NotFound` when the world has moved on (observe and decide
 * again), `Transient` when something is away.
 */
export const act = async (
  effects: Effects,
  sight: Sight,
  plan: Plan,
  memory: Memory,
): Promise<Left | undefined> => {
  const pass: Pass = {
    effects,
    sight,
    memory,
    proxy: sight.proxy,
    version: sight.stored?.version,
    record: sight.stored?.record,
  };
  const consumed = memory.refusals;
  for (const step of plan.steps) await perform(pass, step);
  if (plan.status) {
    const proxy = proxyOf(pass);
    pass.proxy = await effects.cluster.patchStatus(proxy, withForeign(plan.status, proxy));
  }
  memory.refusals = memory.refusals.filter((refusal) => !consumed.includes(refusal));
  for (const event of plan.events) {
    effects.log.info(`${event.reason}: ${event.message}`);
    await effects.cluster.recordEvent(proxyOf(pass), event);
  }
  return leftBy(pass);
};
