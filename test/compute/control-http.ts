/** The control API over HTTP, under `/_control`; README.md beside this file documents it. */

import { z } from 'zod';

import type { CallMatch } from './calls.ts';
import type { ComputeControl } from './control.ts';
import { ApiError } from './errors.ts';
import { faultSchema, proxyModeSchema } from './faults.ts';

export interface ControlRequest {
  readonly httpMethod: string;
  /** What follows `/_control`, with its leading slash. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly body: unknown;
}

const callMatch = (query: URLSearchParams): CallMatch => {
  const text = (key: string): string | undefined => query.get(key) ?? undefined;
  const number = (key: string): number | undefined =>
    query.has(key) ? z.coerce.number().parse(query.get(key)) : undefined;
  return {
    method: text('method'),
    zone: text('zone'),
    name: text('name'),
    namePrefix: text('namePrefix'),
    caller: text('caller'),
    status: number('status'),
    since: number('since'),
  };
};

const instanceAction = async (control: ComputeControl, request: ControlRequest): Promise<unknown> => {
  const [, , name = '', action = ''] = request.path.split('/').map(decodeURIComponent);
  const zone = request.query.get('zone') ?? undefined;
  if (action === 'proxy-mode') {
    await control.setProxyMode(name, proxyModeSchema.parse(request.body), zone);
    return {};
  }
  if (action === 'preempt') await control.preempt(name, zone);
  else if (action === 'stop') await control.stop(name, zone);
  else if (action === 'start') await control.start(name, zone);
  else if (action === 'restart') await control.restart(name, zone);
  else if (action === 'vanish') await control.vanish(name, zone);
  else throw new ApiError(404, 'notFound', `There is no action ${action}.`);
  return { instances: control.instances().filter((instance) => instance.name === name) };
};

type Answer = (control: ComputeControl, request: ControlRequest) => unknown;

const ANSWERS: Readonly<Record<string, Answer>> = {
  'GET /calls': (control, { query }) => {
    const calls = control.calls(callMatch(query));
    return { count: calls.length, calls };
  },
  'DELETE /calls': (control) => {
    control.resetCalls();
    return {};
  },
  'GET /faults': (control) => ({ faults: control.faults() }),
  'POST /faults': (control, { body }) => ({ id: control.addFault(faultSchema.parse(body)) }),
  'DELETE /faults': (control) => {
    control.clearFaults();
    return {};
  },
  'GET /instances': (control) => ({ instances: control.instances() }),
};

const route = async (control: ComputeControl, request: ControlRequest): Promise<unknown> => {
  const { httpMethod, path } = request;
  const fault = /^\/faults\/(?<id>[^/]+)$/u.exec(path)?.groups?.['id'];
  if (httpMethod === 'DELETE' && fault !== undefined) return { removed: control.removeFault(fault) };
  if (httpMethod === 'POST' && /^\/instances\/[^/]+\/[^/]+$/u.test(path)) {
    return instanceAction(control, request);
  }
  const answer = ANSWERS[`${httpMethod} ${path}`];
  if (!answer) throw new ApiError(404, 'notFound', `There is no ${httpMethod} ${path}.`);
  return answer(control, request);
};

/** Answers a control request; what the caller got wrong is a 400 that says what. */
export const answerControl = async (control: ComputeControl, request: ControlRequest): Promise<unknown> => {
  try {
    return await route(control, request);
  } catch (error) {
    if (error instanceof z.ZodError) throw new ApiError(400, 'invalid', z.prettifyError(error));
    if (error instanceof RangeError) throw new ApiError(404, 'notFound', error.message);
    throw error;
  }
};
