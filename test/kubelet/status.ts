/** Statuses as a kubelet writes them. */

import type { Pod } from './cluster.ts';

/** Whole seconds, as Kubernetes keeps times. */
const seconds = (): string => new Date().toISOString().replace(/\.\d{3}Z$/, 'Z');

const is = (holds: boolean): string => (holds ? 'True' : 'False');

const conditions = (ready: boolean, scheduled = true): readonly object[] => {
  const why = ready
    ? {}
    : { reason: 'ContainersNotReady', message: 'containers with unready status: [proxy]' };
  const lastTransitionTime = seconds();
  return [
    { type: 'PodScheduled', status: is(scheduled), lastTransitionTime },
    { type: 'Initialized', status: is(scheduled), lastTransitionTime },
    { type: 'ContainersReady', status: is(ready), lastTransitionTime, ...why },
    { type: 'Ready', status: is(ready), lastTransitionTime, ...why },
  ];
};

const containerOf = (pod: Pod, ready: boolean, state: object): readonly object[] =>
  pod.spec.containers.map(({ name, image }) => ({
    name,
    image,
    imageID: '',
    ready,
    started: ready,
    restartCount: 0,
    state,
  }));

export const unschedulable = (): object => ({
  phase: 'Pending',
  conditions: [
    {
      type: 'PodScheduled',
      status: 'False',
      reason: 'Unschedulable',
      message: "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
      lastTransitionTime: seconds(),
    },
  ],
});

export const imagePullFailed = (pod: Pod): object => ({
  phase: 'Pending',
  conditions: conditions(false),
  containerStatuses: containerOf(pod, false, {
    waiting: {
      reason: 'ImagePullBackOff',
      message: `Back-off pulling image "${pod.spec.containers[0]?.image}"`,
    },
  }),
});

export const running = (pod: Pod, address: string, ready: boolean): object => ({
  phase: 'Running',
  podIP: address,
  podIPs: [{ ip: address }],
  hostIP: '127.0.0.1',
  conditions: conditions(ready),
  containerStatuses: containerOf(pod, ready, { running: { startedAt: seconds() } }),
});

/** Readiness that comes or goes while the container runs on. */
export const readiness = (ready: boolean): object => ({ conditions: conditions(ready) });

/** An evicted Pod loses its address in the same update; `keepAddress` leaves it there, for another Pod to have as well. */
export const failed = (reason: string, message: string, keepAddress: boolean): object => ({
  phase: 'Failed',
  reason,
  message,
  conditions: conditions(false),
  ...(keepAddress ? {} : { podIP: null, podIPs: null }),
});
