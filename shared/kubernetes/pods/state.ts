/** What the state of a Pod says about the proxy in it. */

import type { MachineState } from '#shared/domain/machine.ts';

import type { PodObject } from './schema.ts';

export interface PodState {
  readonly state: MachineState;
  /** Kubernetes' own word for why it is not running, such as `ImagePullBackOff`. */
  readonly reason?: string;
  readonly message?: string;
}

type Told = { readonly reason?: string | null | undefined; readonly message?: string | null | undefined };

const because = (state: MachineState, told: Told | null | undefined): PodState => ({
  state,
  ...(told?.reason ? { reason: told.reason } : {}),
  ...(told?.message ? { message: told.message } : {}),
});

const conditionOf = ({ status }: PodObject, type: string) =>
  status?.conditions?.find((condition) => condition.type === type);

const containersOf = ({ status }: PodObject) => status?.containerStatuses ?? [];

const waitingContainer = (pod: PodObject): Told | undefined =>
  containersOf(pod)
    .map(({ state }) => state?.waiting)
    .find((waiting) => waiting?.reason && waiting.reason !== 'ContainerCreating') ?? undefined;

/** Ended for good, since its container is restarted on its node as long as the Pod lives there. */
const ended = (pod: PodObject): PodState => {
  const { status } = pod;
  if (status?.reason) return because('failed', status);
  const terminated = containersOf(pod)
    .map(({ state }) => state?.terminated)
    .find(Boolean);
  if (!terminated) return { state: 'failed', reason: status?.phase ?? 'Failed' };
  return because('failed', {
    reason: terminated.reason ?? 'Terminated',
    message: terminated.message ?? `the container ended with exit code ${terminated.exitCode}`,
  });
};

const pending = (pod: PodObject): PodState => {
  const scheduled = conditionOf(pod, 'PodScheduled');
  return because('creating', scheduled?.status === 'False' ? scheduled : waitingContainer(pod));
};

/** True when readiness was lost, and not only has not come yet. */
const wasReady = (pod: PodObject): boolean => {
  const lostAt = Date.parse(conditionOf(pod, 'Ready')?.lastTransitionTime ?? '');
  return containersOf(pod).some(
    ({ restartCount, state }) => restartCount > 0 || lostAt > Date.parse(state?.running?.startedAt ?? ''),
  );
};

const running = (pod: PodObject): PodState => {
  const ready = conditionOf(pod, 'Ready');
  if (ready?.status === 'True') return { state: 'running' };
  return because(wasReady(pod) ? 'repairing' : 'creating', waitingContainer(pod) ?? ready);
};

/**
 * Only a Pod that runs, is ready and is not on its way out serves: what the phase says comes after what is being done to
 * it, and a phase that nobody knows says nothing.
 */
export const stateOf = (pod: PodObject): PodState => {
  if (pod.metadata.deletionTimestamp) return { state: 'stopping', reason: 'Terminating' };
  switch (pod.status?.phase ?? '') {
    case 'Failed':
    case 'Succeeded':
      return ended(pod);
    case 'Running':
      return running(pod);
    case 'Pending':
      return pending(pod);
    default:
      return because('unknown', pod.status);
  }
};
