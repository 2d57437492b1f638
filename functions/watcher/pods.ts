/** What provider Pods tell: a Proxy is looked at when one of its Pods begins or ceases to serve, or goes. */

import type { ProxyRef } from '#shared/domain/proxy.ts';
import type { PodObject } from '#shared/kubernetes/cluster.ts';
import { ownerOf, toMachine } from '#shared/kubernetes/pods/machine.ts';
import { stateOf } from '#shared/kubernetes/pods/state.ts';

import type { WatchSink } from './watch-loop.ts';

/** One Pod, as far as its Proxy depends on it. */
interface Seen {
  readonly owner: ProxyRef;
  readonly namespace: string;
  /** Equal for two states that ask for the same reaction; reasons' texts change all the time and are not in it. */
  readonly digest: string;
}

export interface PodSinkPorts {
  /** `version` tells one happening from the next. */
  readonly onNews: (owner: ProxyRef, version: string) => void;
}

const digestOf = (pod: PodObject): string => {
  const { state, address = '' } = toMachine(pod);
  return [state, address, stateOf(pod).reason ?? ''].join('|');
};

/** A Pod that comes up tells nothing that provision, which made it, does not know; neither does one that serves on. */
const isNewsAtFirst = (pod: PodObject): boolean => {
  const { state, reason } = stateOf(pod);
  return state !== 'running' && !(state === 'creating' && reason === undefined);
};

/** Remembers one line per Pod, in memory only, and forgets it with the Pod. */
export const makePodSink = ({ onNews }: PodSinkPorts): WatchSink<PodObject> => {
  const known = new Map<string, Seen>();

  const changed = (pod: PodObject): void => {
    const owner = ownerOf(pod);
    if (!owner) return;
    const { uid, namespace, resourceVersion } = pod.metadata;
    const digest = digestOf(pod);
    const before = known.get(uid)?.digest;
    if (before === digest) return;
    known.set(uid, { owner, namespace, digest });
    if (before !== undefined || isNewsAtFirst(pod)) onNews(owner, `${uid}:${resourceVersion}`);
  };

  const gone = (uid: string): void => {
    const seen = known.get(uid);
    if (!seen) return;
    known.delete(uid);
    onNews(seen.owner, `${uid}:gone`);
  };

  return {
    changed,
    deleted: ({ metadata }) => gone(metadata.uid),
    listed(scope, pods) {
      for (const pod of pods) changed(pod);
      const listed = new Set(pods.map(({ metadata }) => metadata.uid));
      for (const [uid, { namespace }] of known) {
        if ((scope === '*' || scope === namespace) && !listed.has(uid)) gone(uid);
      }
    },
    // What becomes of Pods is found by gc's runs too: nobody's life hangs on this watch.
    progress: () => undefined,
    failed: () => undefined,
  };
};
