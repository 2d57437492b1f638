import { assert, property } from 'fast-check';
import { describe, expect, it } from 'vitest';

import { decide } from '../../../functions/provision/decide.ts';
import type { Observation, Plan } from '../../../functions/provision/plan.ts';
import type { Machine } from '#shared/domain/machine.ts';
import { publications, type ProxyRecord } from '#shared/domain/record.ts';

import { NOW } from './builders.ts';
import { observation } from './observations.ts';

const RUNS = { numRuns: 600 };

const seenMachines = ({ fleet }: Observation): readonly Machine[] =>
  fleet.kind === 'seen'
    ? Object.values(fleet.machines)
        .flat()
        .flatMap((each) => (each.kind === 'machine' ? [each.machine] : []))
    : [];

/** The record after the plan. */
const after = (seen: Observation, plan: ReturnType<typeof decide>): ProxyRecord | undefined =>
  plan.steps.findLast((step) => step.kind === 'writeRecord')?.record ?? seen.record;

const goesOn = ({ next }: Plan): boolean =>
  next.again === true ||
  next.retry === true ||
  (next.operations?.length ?? 0) > 0 ||
  next.pauseMs !== undefined;

/** There is no Proxy, or it waits for somebody else's finalizer. */
const needsNothing = ({ proxy }: Observation): boolean => !proxy || (proxy.deleting && !proxy.hasFinalizer);

const isFinal = ({ steps }: Plan): boolean => steps.some(({ kind }) => kind === 'removeFinalizer');

/** Somebody looks again within ten minutes, or an endpoint serves whose verdicts will say when to. */
const isOpenOrDone = ({ status }: Plan, left: ProxyRecord | undefined): boolean => {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  const { wakeAt = 0, serving } = left ?? {};
  const wakes = wakeAt > NOW && wakeAt <= NOW + 600_000;
  return wakes || ready?.status === 'True' || (serving !== undefined && serving.verdict.state !== 'Unknown');
};

describe('no plan, whatever is observed,', () => {
  it('deletes a machine that is not proven ours', () => {
    assert(
      property(observation, (seen) => {
        for (const step of decide(seen, NOW).steps) {
          if (step.kind !== 'deleteMachine') continue;
          const known = seen.record?.machines.find(({ name }) => name === step.machine.name);
          const byId = known?.instanceId === step.machine.instanceId;
          const byLabels =
            step.machine.installation === seen.installation && step.machine.uid === seen.ref.uid;
          if (!known || !(byId || byLabels)) return false;
        }
        return true;
      }),
      RUNS,
    );
  });

  it('deletes what a machine left behind, unless it is proven ours and the machine is not there', () => {
    assert(
      property(observation, (seen) =>
        decide(seen, NOW).steps.every(
          (step) =>
            step.kind !== 'deleteLeftover' ||
            (step.leftover.installation === seen.installation &&
              step.leftover.uid === seen.ref.uid &&
              seen.record?.machines.some(({ name }) => name === step.leftover.name) === true &&
              seenMachines(seen).every(({ name }) => name !== step.leftover.name)),
        ),
      ),
      RUNS,
    );
  });

  it('rests while something is published where another Proxy published later', () => {
    assert(
      property(observation, (seen) => {
        const plan = decide(seen, NOW);
        if (plan.next.again || needsNothing(seen)) return true;
        const left = after(seen, plan);
        return (left ? publications(left) : []).every(({ endpoint: { host, port }, publishedAt }) =>
          (seen.rivals ?? []).every(
            (rival) => rival.host !== host || rival.port !== port || rival.publishedAt <= publishedAt,
          ),
        );
      }),
      RUNS,
    );
  });

  it('deletes a machine whose endpoint is still published when it does', () => {
    assert(
      property(observation, (seen) => {
        const plan = decide(seen, NOW);
        const left = after(seen, plan);
        const live = new Set(left ? publications(left).map(({ endpoint }) => endpoint.instanceId) : []);
        return plan.steps.every(
          (step) => step.kind !== 'deleteMachine' || !live.has(step.machine.instanceId),
        );
      }),
      RUNS,
    );
  });

  it('publishes an endpoint that is not that of the recorded machine, running there now (B1)', () => {
    assert(
      property(observation, (seen) => {
        const before = new Set(
          seen.record ? publications(seen.record).map(({ endpoint }) => endpoint.id) : [],
        );
        const left = after(seen, decide(seen, NOW));
        return (left ? publications(left) : []).every(
          ({ endpoint, machine: name }) =>
            before.has(endpoint.id) ||
            seenMachines(seen).some(
              (each) =>
                each.name === name &&
                each.instanceId === endpoint.instanceId &&
                each.address === endpoint.host &&
                each.state === 'running' &&
                left?.machines.some((known) => known.name === name),
            ),
        );
      }),
      RUNS,
    );
  });

  it('creates anything without our finalizer, for a Proxy that goes, or without a recorded intent (K2, row 54)', () => {
    assert(
      property(observation, (seen) => {
        const create = decide(seen, NOW).steps.find((step) => step.kind === 'createMachine');
        if (!create) return true;
        const isRecorded = seen.record?.machines.some(
          ({ name, zones }) => name === create.name && zones.includes(create.zone),
        );
        return isRecorded === true && seen.proxy?.hasFinalizer === true && !seen.proxy.deleting;
      }),
      RUNS,
    );
  });

  it('removes the finalizer while a machine may be left (K3)', () => {
    assert(
      property(observation, (seen) => {
        const plan = decide(seen, NOW);
        if (!plan.steps.some(({ kind }) => kind === 'removeFinalizer')) return true;
        return seen.record === undefined || after(seen, plan)?.machines.length === 0;
      }),
      RUNS,
    );
  });

  it('falls back on an incarnation, or gives one out twice', () => {
    assert(
      property(observation, (seen) => {
        const left = after(seen, decide(seen, NOW));
        const names = left?.machines.map(({ name }) => name) ?? [];
        const isHighest = left?.machines.every(({ incarnation }) => incarnation <= left.incarnation) ?? true;
        return (
          new Set(names).size === names.length &&
          isHighest &&
          (left?.incarnation ?? 0) >= (seen.record?.incarnation ?? 0)
        );
      }),
      RUNS,
    );
  });

  it('ends without a condition, a wake-up, or nothing left to do', () => {
    assert(
      property(observation, (seen) => {
        const plan = decide(seen, NOW);
        return goesOn(plan) || needsNothing(seen) || isFinal(plan) || isOpenOrDone(plan, after(seen, plan));
      }),
      RUNS,
    );
  });
});

it('a decision is the same each time', () => {
  assert(
    property(observation, (seen) => {
      expect(decide(seen, NOW)).toEqual(decide(structuredClone(seen), NOW));
    }),
    { numRuns: 300 },
  );
});
