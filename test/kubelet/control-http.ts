/** The control API over HTTP, under `/_control`. */

import type { IncomingMessage, ServerResponse } from 'node:http';

import { z } from 'zod';

import { proxyModeSchema } from '#test/compute/faults.ts';

import type { KubeletControl } from './control.ts';
import { podFaultSchema } from './faults.ts';

const failureSchema = z.object({
  reason: z.string().default('Evicted'),
  message: z.string().default('The node was low on memory.'),
  keepAddress: z.boolean().default(false),
});

const bodyOf = async (request: IncomingMessage): Promise<unknown> => {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text === '' ? {} : JSON.parse(text);
};

const podAction = async (
  control: KubeletControl,
  name: string,
  action: string,
  body: unknown,
): Promise<unknown> => {
  if (action === 'fail') await control.fail(name, failureSchema.parse(body));
  else if (action === 'ready' || action === 'unready') await control.setReady(name, action === 'ready');
  else if (action === 'proxy-mode') await control.setProxyMode(name, proxyModeSchema.parse(body));
  else throw new RangeError(`there is no action ${action}`);
  return { pods: control.pods().filter((pod) => pod.name === name) };
};

const route = async (control: KubeletControl, request: IncomingMessage): Promise<unknown> => {
  const path = (request.url ?? '').replace(/^\/_control/u, '');
  const [, collection = '', name = '', action = ''] = path.split('/').map(decodeURIComponent);
  switch (`${request.method} ${collection}`) {
    case 'GET pods':
      return { pods: control.pods() };
    case 'POST pods':
      return podAction(control, name, action, await bodyOf(request));
    case 'GET faults':
      return { faults: control.faults() };
    case 'POST faults':
      return { id: control.addFault(podFaultSchema.parse(await bodyOf(request))) };
    case 'DELETE faults':
      if (name) return { removed: control.removeFault(name) };
      control.clearFaults();
      return {};
    default:
      throw new RangeError(`there is no ${request.method} ${path}`);
  }
};

const statusOf = (error: unknown): number => {
  if (error instanceof RangeError) return 404;
  return error instanceof z.ZodError || error instanceof SyntaxError ? 400 : 500;
};

/** Never rejects; what the caller got wrong is a 400 or 404 that says what. */
export const answerControl = async (
  control: KubeletControl,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> => {
  let status = 200;
  let body: unknown;
  try {
    body = await route(control, request);
  } catch (error) {
    status = statusOf(error);
    body = { error: error instanceof Error ? error.message : String(error) };
  }
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
};
