/** Deletes condemned machines, each after one more live look at everything that could have saved it. */

import { errorChain } from '#shared/app/errors.ts';
import type { Machine, MachineProvider } from '#shared/domain/machine.ts';
import type { ProxyRef } from '#shared/domain/proxy.ts';
import type { RecordStore } from '#shared/firestore/records.ts';
import type { Cluster } from '#shared/kubernetes/cluster.ts';

import { inParallel } from './parallel.ts';
import type { Judgement } from './orphans.ts';

export type Outcome =
  | { readonly kind: 'deleted' }
  | {
      readonly kind: 'kept';
      readonly why:
        | 'AlreadyGone'
        | 'OtherMachine'
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
  { machine }: Judgement,
  installation: string,
): Outcome | undefined => {
  if (!live) return kept('AlreadyGone');
  if (live.instanceId !== machine.instanceId) return kept('OtherMachine');
  if (live.installation !== installation || live.uid !== machine.uid) return kept('NoLongerOurs');
  return live.state === 'stopping' ? kept('DeleteUnderWay') : undefined;
};

const removeOne = async (judgement: Judgement, removing: Removing): Promise<Outcome> => {
  const { machine } = judgement;
  const provider = removing.providers.find(({ name }) => name === judgement.provider);
  if (!provider || machine.uid === undefined) return kept('NoLongerOurs');
  const owned = await savedByOwner(machine.uid, removing);
  if (owned) return owned;
  const live = await provider.get(machine.name, machine.zone);
  const saved = savedByState(live, judgement, removing.installation);
  if (saved || !live) return saved ?? kept('AlreadyGone');
  if (removing.outOfTime()) return kept('OutOfTime');
  await provider.delete(live);
  return { kind: 'deleted' };
};

/** The outcome of every deletion. A failure keeps that machine for the next run and stops no other. */
export const removeMachines = (
  deletions: readonly Judgement[],
  removing: Removing,
): Promise<readonly Removal[]> =>
  inParallel(deletions, WIDTH, async (judgement) => {
    if (removing.outOfTime()) return { ...judgement, outcome: kept('OutOfTime') };
    try {
      return { ...judgement, outcome: await removeOne(judgement, removing) };
    } catch (error) {
      return { ...judgement, outcome: { kind: 'failed', error: errorChain(error) } };
    }
  });
