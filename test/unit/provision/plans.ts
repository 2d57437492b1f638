/** What is decided of an observation, and what a test asks about it. */

import type { Observation, Plan, Step } from '../../../functions/provision/plan.ts';
import { decide } from '../../../functions/provision/decide.ts';
import type { Condition, ConditionType } from '#shared/domain/conditions.ts';
import type { ProxyRecord } from '#shared/domain/record.ts';

import { NOW } from './builders.ts';

export const planOf = (observation: Observation): Plan => decide(observation, NOW);

export const kinds = (plan: Plan): readonly Step['kind'][] => plan.steps.map(({ kind }) => kind);

export const stepOf = <K extends Step['kind']>(plan: Plan, kind: K): Extract<Step, { kind: K }> | undefined =>
  plan.steps.find((step): step is Extract<Step, { kind: K }> => step.kind === kind);

/** The last record that the plan writes. */
export const writtenBy = (plan: Plan): ProxyRecord | undefined =>
  plan.steps.findLast((step) => step.kind === 'writeRecord')?.record;

export const conditionOf = (plan: Plan, type: ConditionType): Condition | undefined =>
  plan.status?.conditions?.find((condition) => condition.type === type);

export const reasonOf = (plan: Plan, type: ConditionType): string | undefined =>
  conditionOf(plan, type)?.reason;
