/** Deletes condemned machines and leftovers, each after one more live look at everything that could have saved it. */

import { errorChain } from '#shared/app/errors.ts';
import type { Leftover, Machine, MachineProvider } from '#shared/domain/machine.ts';
import type { ProxyRef } from '#shared/domain/proxy.ts';
import type { RecordStore } from '#shared/firestore/records.ts';
import type { Cluster } from '#shared/kubernetes/cluster.ts';

import { inParallel } from './parallel.ts';
import { identityOf, isMachine } from './observation.ts';
import type { Judgement, LeftoverJudgement, MachineJudgement } from './orphans.ts';

export type Outcome =
  | { readonly kind: 'deleted' }
  | {
      readonly kind: 'kept';
      readonly why:
        | 'AlreadyGone'
        | 'OtherMachine'
        | 'GoneOrInUse'
        | 'OtherLeftover'
        | 'MachineExists'
        | 'NoLongerOurs'
        | 'DeleteUnderWay'
        | 'RecordLives'
        | 'ProxyExists'
        | 'OutOfTime';
    }
  | { readonly kind: 'failed'; readonly error: readonly string[] };

export type Removal = Judgement & { readonly outcome: Outcome };

export interface Removing {
  readonly installation: string;
  readonly providers: readonly MachineProvider[];
  readonly cluster: Pick<Cluster, 'getProxy'>;
  readonly records: Pick<RecordStore, 'read'>;
  /** Names of Proxies that are known by their tombstones. */
  readonly refs: ReadonlyMap<string, ProxyRef>;
  /** True once the lock is about to expire: no further delete call is sent. */
  readonly outOfTime: () => boolean;
}

const WIDTH = 4;

const kept = (why: Extract<Outcome, { kind: 'kept' }>['why']): Outcome => ({ kind: 'kept', why });

/** A record and a Proxy that appeared since the lists were read. Without any record the complete list is all there is. */
const savedByOwner = async (uid: string, removing: Removing): Promise<Outcome | undefined> => {
  const stored = await removing.records.read(uid);
  if (stored && !stored.record.gone) return kept('RecordLives');
  const ref = stored?.record.ref ?? removing.refs.get(uid);
  if (!ref) return undefined;
  const proxy = await removing.cluster.getProxy({ namespace: ref.namespace, name: ref.name });
  return proxy?.metadata.uid === uid ? kept('ProxyExists') : undefined;
};

const savedByState = (
  live: Machine | undefined,
  { machine }: MachineJudgement,
  installation: string,
): Outcome | undefined => {
  if (!live) return kept('AlreadyGone');
  if (live.instanceId !== machine.instanceId) return kept('OtherMachine');
  if (live.installation !== installation || live.uid !== machine.uid) return kept('NoLongerOurs');
  return live.state === 'stopping' ? kept('DeleteUnderWay') : undefined;
};

const removeMachine = async (
  judgement: MachineJudgement,
  provider: MachineProvider,
  removing: Removing,
): Promise<Outcome> => {
  const live = await provider.get(judgement.machine.name, judgement.machine.zone);
  const saved = savedByState(live, judgement, removing.installation);
  if (saved || !live) return saved ?? kept('AlreadyGone');
  if (removing.outOfTime()) return kept('OutOfTime');
  await provider.delete(live);
  return { kind: 'deleted' };
};

/** The list shows only machines that carry our label; one of this name may have lost it. */
const savedByMachine = (
  live: Leftover | undefined,
  machine: Machine | undefined,
  { leftover }: LeftoverJudgement,
  installation: string,
): Outcome | undefined => {
  if (!live) return kept('GoneOrInUse');
  if (live.id !== leftover.id) return kept('OtherLeftover');
  if (live.installation !== installation || live.uid !== leftover.uid) return kept('NoLongerOurs');
  return machine ? kept('MachineExists') : undefined;
};

const removeLeftover = async (
  judgement: LeftoverJudgement,
  provider: MachineProvider,
  removing: Removing,
): Promise<Outcome> => {
  const { name, zone } = judgement.leftover;
  const machine = await provider.get(name, zone);
  const live = await provider.leftover(name, zone);
  const saved = savedByMachine(live, machine, judgement, removing.installation);
  if (saved || !live) return saved ?? kept('GoneOrInUse');
  if (removing.outOfTime()) return kept('OutOfTime');
  return (await provider.deleteLeftover(live)) ? { kind: 'deleted' } : kept('GoneOrInUse');
};

const removeOne = async (judgement: Judgement, removing: Removing): Promise<Outcome> => {
  const { uid } = identityOf(judgement);
  const provider = removing.providers.find(({ name }) => name === judgement.provider);
  if (!provider || uid === undefined) return kept('NoLongerOurs');
  const owned = await savedByOwner(uid, removing);
  if (owned) return owned;
  return isMachine(judgement)
    ? removeMachine(judgement, provider, removing)
    : removeLeftover(judgement, provider, removing);
};

/** The outcome of every deletion. A failure keeps that one for the next run and stops no other. */
export const removeAll = (deletions: readonly Judgement[], removing: Removing): Promise<readonly Removal[]> =>
  inParallel(deletions, WIDTH, async (judgement) => {
    if (removing.outOfTime()) return { ...judgement, outcome: kept('OutOfTime') };
    try {
      return { ...judgement, outcome: await removeOne(judgement, removing) };
    } catch (error) {
      return { ...judgement, outcome: { kind: 'failed', error: errorChain(error) } };
    }
  });
