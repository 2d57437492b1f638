/** From a Pod to a machine as the domain knows it, and to the Proxy that it belongs to. */

import type { Machine } from '#shared/domain/machine.ts';
import { MACHINE_LABELS } from '#shared/domain/names.ts';
import type { ProxyRef } from '#shared/domain/proxy.ts';

import { PROXY_RESOURCE } from '../proxy.gen.ts';
import type { PodObject } from './schema.ts';
import { stateOf, type PodState } from './state.ts';

const present = <K extends string, V>(key: K, value: V | null | undefined): Partial<Record<K, V>> => {
  const entry: Partial<Record<K, V>> = {};
  if (value !== undefined && value !== null && value !== '') entry[key] = value;
  return entry;
};

const detailOf = ({ reason, message }: PodState): string | undefined =>
  reason && message ? `${reason}: ${message}` : (reason ?? message);

/** The address of a Pod that has ended is another's soon: only one that serves has an address. */
export const toMachine = (pod: PodObject): Machine => {
  const { name, namespace, uid, creationTimestamp, labels } = pod.metadata;
  const state = stateOf(pod);
  const createdAt = Date.parse(creationTimestamp ?? '');
  return {
    name,
    zone: namespace,
    instanceId: uid,
    providerID: `pod://${namespace}/${name}`,
    state: state.state,
    ...present('address', state.state === 'running' ? pod.status?.podIP : undefined),
    ...present('installation', labels?.[MACHINE_LABELS.installation]),
    ...present('uid', labels?.[MACHINE_LABELS.uid]),
    ...present('hash', labels?.[MACHINE_LABELS.hash]),
    ...present('createdAt', Number.isNaN(createdAt) ? undefined : createdAt),
    ...present('detail', detailOf(state)),
  };
};

/** The Proxy that owns a Pod, by the reference that the cluster's garbage collector follows. */
export const ownerOf = ({ metadata }: PodObject): ProxyRef | undefined => {
  const owner = metadata.ownerReferences?.find(
    ({ kind, apiVersion }) =>
      kind === PROXY_RESOURCE.kind && apiVersion.startsWith(`${PROXY_RESOURCE.group}/`),
  );
  return owner && { namespace: metadata.namespace, name: owner.name, uid: owner.uid };
};
