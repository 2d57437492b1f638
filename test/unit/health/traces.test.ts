import { expect, it } from 'vitest';

import { systemClock } from '#shared/app/clock.ts';
import type { HttpRequest } from '#shared/app/http.ts';
import { systemIds } from '#shared/app/ids.ts';
import { instrument } from '#shared/app/instrumentation.ts';
import { parseTraceparent } from '#shared/app/trace-context.ts';
import type { ChangeMessage } from '#shared/domain/message.ts';

import { makeHandler } from '../../../functions/health/handler.ts';
import { healthParts, probeOf } from './one-proxy.ts';

const traceparentOf = (letter: string): string => `00-${letter.repeat(32)}-${'1'.repeat(16)}-01`;

/** The trace in which a nudge goes out: its own, or that of the work that sends it. */
const traceOfNudge = async (
  state: 'Unknown' | 'Unhealthy',
  more: { readonly traceparent?: string },
  request: Pick<HttpRequest, 'path' | 'headers'> & { readonly push?: object },
): Promise<string | undefined> => {
  const { tracing } = instrument({
    name: 'health',
    projectId: 'p',
    clock: systemClock,
    ids: systemIds,
    write: () => undefined,
  });
  const traces: (string | undefined)[] = [];
  const change = async ({ traceparent = tracing.traceparent() }: ChangeMessage): Promise<void> => {
    traces.push(parseTraceparent(traceparent)?.traceId);
  };
  const handler = makeHandler({ ...healthParts(state, 'Ok', more), publisher: { change }, tracing });
  const { push = {}, ...rest } = request;
  const body = new TextEncoder().encode(JSON.stringify(push));
  await handler({ ...rest, method: 'POST', query: new URLSearchParams(), body });
  expect(traces).toHaveLength(1);
  return traces[0];
};

const ROUND = { path: '/', headers: { traceparent: traceparentOf('a') } };

it('a round goes on in the trace of the change that a record is under way with', async () => {
  expect(await traceOfNudge('Unhealthy', { traceparent: traceparentOf('c') }, ROUND)).toBe('c'.repeat(32));
});

it('a round that meets none goes on in its own, which is that of its request', async () => {
  expect(await traceOfNudge('Unhealthy', {}, ROUND)).toBe('a'.repeat(32));
});

it('the first probe goes on in the trace of the message that asked for it', async () => {
  const { message } = probeOf('published');
  const push = { message: { ...message, attributes: { googclient_traceparent: traceparentOf('b') } } };
  const request = { path: '/probes', headers: {}, push };
  expect(await traceOfNudge('Unknown', {}, request)).toBe('b'.repeat(32));
});
