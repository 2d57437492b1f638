/** Checks of a machine of ours that is there: on its way up or down, without address, published or not. */

import type { Finding } from '#shared/domain/conditions.ts';

import { isReplacing, progress, startAfresh, type Check, type Seen } from './machine-scene.ts';
import { publish, unsettledVerdict } from './publish.ts';
import { probeFailure } from './remedies.ts';
import { rivalAt, takenMessage } from './rivals.ts';
import { WATCH_MS } from './tidy.ts';

const BLOCKED_MS = 300_000;
/** A candidate that has no good verdict for so long is said to block its replacement. */
const PATIENCE_MS = 300_000;

const started = (scene: Seen, why: string): ReturnType<Check<Seen>> => {
  const { observation, record, machine } = scene;
  const running = observation.pending.find(
    ({ kind, machine: name }) => kind === 'start' && name === machine.name,
  );
  const refused = observation.refusals.find(
    ({ kind, machine: name }) => kind === 'start' && name === machine.name,
  );
  if (refused)
    return startAfresh(scene, {
      because: 'cannotBeRestarted',
      proven: false,
      reason: 'MachineStopped',
      message: `Machine ${machine.name} had stopped and could not be started again (${refused.code}: ${refused.message}).`,
    });
  return {
    because: 'isRestarted',
    record,
    after: running ? [] : [{ kind: 'startMachine', machine }],
    provisioned: progress(scene, 'Restarting', why),
    next: running ? { operations: [running] } : { again: true },
  };
};

/** A stopped machine is started again (its address will be another one); a Spot machine that was taken is replaced. */
export const isStopped: Check<Seen> = (scene) => {
  const { machine, facts } = scene;
  if (machine.state !== 'stopped') return undefined;
  const detail = machine.detail ? ` (${machine.detail})` : '';
  if (facts.desired.machine?.gcp?.provisioningModel === 'Spot')
    return startAfresh(scene, {
      because: 'spotMachineWasTaken',
      proven: false,
      reason: 'MachineStopped',
      message: `Spot machine ${machine.name} was stopped${detail}, as the provider may do at any time; another one is made.`,
    });
  return started(scene, `Machine ${machine.name} had stopped${detail} and is started again.`);
};

/** Suspended or failed machines do not come back by themselves. */
export const isBroken: Check<Seen> = (scene) => {
  const { name, state, detail } = scene.machine;
  if (state !== 'suspended' && state !== 'failed') return undefined;
  const why = detail ? ` (${detail})` : '';
  return startAfresh(scene, {
    because: state === 'failed' ? 'machineIsFailed' : 'machineIsSuspended',
    proven: false,
    reason: 'MachineStopped',
    message: `Machine ${name} ${state === 'failed' ? 'has failed' : 'was suspended'}${why} and is replaced.`,
  });
};

/** A Pod that is being deleted never comes back, and one on a lost node may never go: it is not waited for. */
export const isTerminating: Check<Seen> = (scene) => {
  const { machine, facts } = scene;
  if (machine.state !== 'stopping' || facts.desired.provider !== 'kubernetes') return undefined;
  return startAfresh(scene, {
    because: 'isTerminating',
    proven: false,
    reason: 'MachineStopped',
    message: `Pod ${machine.name} is being deleted by somebody else and is replaced.`,
  });
};

const STATE_WORDS: Readonly<Partial<Record<Seen['machine']['state'], string>>> = {
  creating: 'being created',
  unknown: 'in a state that is not known here',
};

/** On its way, one way or the other: watched. */
export const isChanging: Check<Seen> = (scene) => {
  const { machine, record } = scene;
  if (machine.state === 'running') return undefined;
  const detail = machine.detail ? ` (${machine.detail})` : '';
  const held =
    machine.state === 'creating' && machine.detail ? ' If this lasts, correct what it waits for.' : '';
  const message = `Machine ${machine.name} is ${STATE_WORDS[machine.state] ?? machine.state}${detail}.${held}`;
  return {
    because: 'isChanging',
    record,
    provisioned: progress(scene, machine.state === 'creating' ? 'Creating' : 'MachineStopped', message),
    next: { pauseMs: WATCH_MS },
  };
};

export const hasNoAddress: Check<Seen> = (scene) =>
  scene.machine.address === undefined
    ? {
        because: 'hasNoAddress',
        record: scene.record,
        provisioned: progress(
          scene,
          'WaitingForAddress',
          `Machine ${scene.machine.name} runs and has no address yet. If this lasts, see its network interface and the quota of external addresses.`,
        ),
        next: { pauseMs: WATCH_MS },
      }
    : undefined;

/** It gave way to a newer endpoint at this address once, and that one is still there: two would take turns for ever. */
export const hasAnothersAddress: Check<Seen> = (scene) => {
  const { observation, record, wanted, machine, facts, now } = scene;
  const { yielded } = wanted;
  const host = machine.address;
  if (yielded === undefined || host === undefined || yielded.host !== host) return undefined;
  const rival = rivalAt(observation, { host, port: facts.desired.machine?.port ?? 0 }, yielded.at);
  const published = [record.serving, record.candidate].some((each) => each?.machine === machine.name);
  if (!rival || published) return undefined;
  return {
    because: 'hasAnothersAddress',
    record,
    provisioned: { status: 'False', reason: 'Conflict', message: takenMessage(rival) },
    stalled: true,
    blocked: isReplacing(scene),
    wake: { at: now + BLOCKED_MS, reason: 'Conflict' },
    next: {},
  };
};

const runs = ({ machine }: Seen): Finding<'Provisioned'> => ({
  status: 'True',
  reason: 'Provisioned',
  message: `Machine ${machine.name} runs${machine.zone ? ` in ${machine.zone}` : ''}.`,
});

const isProbed = ({ machine }: Seen): Finding<'Provisioned'> => ({
  status: 'False',
  reason: 'Replacing',
  message: `Machine ${machine.name} runs; it takes over when its endpoint is healthy.`,
});

export const isNotPublished: Check<Seen> = (scene) => {
  const { observation, record, machine, inputs, facts, now } = scene;
  const host = machine.address;
  const published = [record.serving, record.candidate].some((each) => each?.machine === machine.name);
  if (published || host === undefined) return undefined;
  const endpoint = {
    id: observation.freshId,
    host,
    port: facts.desired.machine?.port ?? 0,
    scheme: 'http',
    instanceId: machine.instanceId,
    credentialsVersion: inputs.credentialsVersion,
  } as const;
  return publish(record, {
    endpoint,
    as: record.serving ? 'candidate' : 'serving',
    machine: {
      machine: machine.name,
      // A Pod's place is its namespace, which is no zone.
      ...(facts.desired.provider === 'gcp' ? { zone: machine.zone } : {}),
      providerID: machine.providerID,
      ownExit: facts.desired.ownExit,
    },
    provisioned: record.serving ? isProbed(scene) : runs(scene),
    now,
  });
};

/** The successor is published beside what serves, and not healthy yet, or never. */
export const candidateIsAwaited: Check<Seen> = (scene) => {
  const { record, machine, now } = scene;
  const { candidate } = record;
  if (!candidate) return undefined;
  const isBad = candidate.verdict.state === 'Unhealthy' || now - candidate.publishedAt >= PATIENCE_MS;
  const waiting = unsettledVerdict(candidate, now);
  return {
    because: 'candidateIsAwaited',
    record,
    after: waiting.steps,
    provisioned: isBad
      ? {
          ...isProbed(scene),
          message: `Machine ${machine.name} runs, but its endpoint ${candidate.verdict.state === 'Unhealthy' ? `does not answer probes: ${probeFailure(candidate.verdict)}` : 'has had no verdict for a long time.'} Correct the spec, or set it back to end this replacement.`,
        }
      : isProbed(scene),
    blocked: isBad,
    wake: waiting.wake ?? { at: now + BLOCKED_MS, reason: 'Replacing' },
    next: {},
  };
};

export const isServing: Check<Seen> = (scene) => {
  const waiting = unsettledVerdict(scene.record.serving, scene.now);
  return {
    because: 'isServing',
    record: scene.record,
    after: waiting.steps,
    provisioned: runs(scene),
    ...(waiting.wake ? { wake: waiting.wake } : {}),
    next: {},
  };
};
