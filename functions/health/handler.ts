/** `POST /` is a scheduled round, `POST /probes` a message of `proxy-probes`, `GET /health` a sign of life. */

import { problem, type HttpHandler, type HttpReply, type HttpRequest } from '#shared/app/http.ts';
import { agesOf, decodePush, parseProbe } from '#shared/app/push.ts';
import { parentOf } from '#shared/app/trace-context.ts';
import { noTracing } from '#shared/app/tracing.ts';

import { makePublishedProbes, makeReportProbes } from './early.ts';
import { makePools, type Parts, type Running } from './parts.ts';
import { makeProbing } from './probing.ts';
import { runRound, type RunMemory } from './shards.ts';
import { METRICS } from './signals.ts';

type Route = (request: HttpRequest) => Promise<HttpReply>;

const makeRounds = (running: Running): Route => {
  const memory: RunMemory = { holder: running.ids.token(), published: new Map() };
  const { log, tracing = noTracing } = running;
  let busy = false;
  const round = async (): Promise<HttpReply> => {
    const report = await runRound(memory, running);
    log.info('health round', { report });
    return { status: 200, body: report };
  };
  return async (request) => {
    if (busy) return { status: 200, body: { kind: 'skipped', why: 'a round is under way' } };
    busy = true;
    try {
      return await tracing.span('health.round', { parent: parentOf(request) }, round);
    } finally {
      busy = false;
    }
  };
};

const makeProbeMessages = (running: Running): Route => {
  const { log, metrics, clock, tracing = noTracing } = running;
  const published = makePublishedProbes(running);
  const reported = makeReportProbes(running);
  const drop = (why: string): HttpReply => {
    log.warning('probe message dropped', { why });
    metrics.count(METRICS.undecodable, { topic: 'proxy-probes' });
    return { status: 204 };
  };
  return async ({ body }) => {
    const push = decodePush(body);
    if (push.kind === 'undecodable') return drop(push.why);
    const message = parseProbe(push.data);
    if (!message) return drop('the data is no probe message');
    metrics.record(METRICS.messageAge, {}, agesOf(push, clock));
    const { uid, reason } = message;
    const attributes = { uid, reason, messageId: push.messageId };
    await tracing.span('health.probes', { parent: push.traceparent, attributes }, () =>
      reason === 'published' ? published(uid) : reported(uid, (push.deliveryAttempt ?? 1) > 1),
    );
    return { status: 204 };
  };
};

const makeRoutes = (running: Running): Readonly<Record<string, { readonly [path: string]: Route }>> => ({
  GET: { '/health': () => Promise.resolve({ status: 200, body: { status: 'ok' } }) },
  POST: { '/': makeRounds(running), '/probes': makeProbeMessages(running) },
});

export const makeHandler = (parts: Parts): HttpHandler => {
  const running: Running = {
    ...parts,
    pools: makePools(parts.probesAtOnce, parts.clock),
    probing: makeProbing(parts),
  };
  const routes = makeRoutes(running);
  return async (request) => {
    const route = routes[request.method]?.[request.path];
    if (route) return route(request);
    const allowed = Object.keys(routes).filter((method) => routes[method]?.[request.path]);
    return allowed.length > 0
      ? problem(405, 'MethodNotAllowed', `Use ${allowed.join(', ')}.`, {}, { allow: allowed.join(', ') })
      : problem(404, 'NotFound', 'There is nothing at this path.');
  };
};
