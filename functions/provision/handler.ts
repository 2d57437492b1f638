/** A push of `proxy-changes`: a nudge to look at one Proxy. */

import { hasCode } from '#shared/app/errors.ts';
import { problem, type HttpHandler, type HttpReply } from '#shared/app/http.ts';
import type { Metrics } from '#shared/app/metrics.ts';
import { agesOf, decodePush, parseChange, type PushedMessage } from '#shared/app/push.ts';
import { noTracing } from '#shared/app/tracing.ts';
import type { ChangeMessage } from '#shared/domain/message.ts';
import type { ProxyRef } from '#shared/domain/proxy.ts';

import { makeLanes } from './lanes.ts';
import { run, type Parts, type RunResult } from './run.ts';

export interface HandlerParts extends Parts {
  readonly metrics: Metrics;
  /** `['*']` or the installation's namespaces. */
  readonly namespaces: readonly string[];
}

const ACKNOWLEDGED: HttpReply = { status: 204 };

const away = (): HttpReply =>
  problem(503, 'Unavailable', 'A service that this one needs did not answer.', {}, { 'retry-after': '5' });

/** gc's reason for a machine that its record does not know: only a look by UID can find it. */
const NOT_RECORDED = 'MachineNotRecorded';

type Decoded = { readonly push: PushedMessage; readonly change: ChangeMessage } | { readonly why: string };

const decode = (body: Uint8Array): Decoded => {
  const push = decodePush(body);
  if (push.kind === 'undecodable') return { why: push.why };
  const change = parseChange(push.data);
  return change ? { push, change } : { why: 'the message is not a change of a Proxy' };
};

/** Only what a retry mends is refused: a refused message holds back every later one of its Proxy. */
const settle = async ({ log, metrics }: HandlerParts, work: () => Promise<RunResult>): Promise<HttpReply> => {
  try {
    const result = await work();
    metrics.count('provision_calls', { result });
    return result === 'done' ? ACKNOWLEDGED : away();
  } catch (error) {
    const mendable = hasCode(error, 'Transient', 'Unauthorised', 'Conflict', 'NotFound');
    log.error('the Proxy could not be worked on', error);
    metrics.count('provision_calls', { result: mendable ? 'away' : 'failed' });
    return mendable ? away() : ACKNOWLEDGED;
  }
};

/** POST / takes a push; GET /health answers 200. */
export const makeHandler = (parts: HandlerParts): HttpHandler => {
  const { log, metrics, namespaces, tracing = noTracing } = parts;
  const lanes = makeLanes<RunResult>();
  const isOurs = ({ namespace }: ProxyRef): boolean =>
    namespaces.includes('*') || namespaces.includes(namespace);

  const onChange = async ({ namespace, name, uid, reason }: ChangeMessage): Promise<HttpReply> => {
    const ref = { namespace, name, uid };
    if (!isOurs(ref)) {
      log.warning('a message was dropped', {
        why: 'the namespace belongs to no installation of ours',
        ...ref,
      });
      return ACKNOWLEDGED;
    }
    return settle(parts, () => lanes.enter(uid, () => run(parts, ref, reason === NOT_RECORDED)));
  };

  const onPush = async (body: Uint8Array): Promise<HttpReply> => {
    const decoded = decode(body);
    if ('why' in decoded) {
      log.warning('a message was dropped', { why: decoded.why });
      metrics.count('provision_messages_dropped');
      return ACKNOWLEDGED;
    }
    const { push, change } = decoded;
    metrics.record('provision_message_age_ms', {}, agesOf(push, parts.clock));
    const attributes = { ...change, messageId: push.messageId };
    return tracing.span('provision.change', { parent: push.traceparent, attributes }, () => onChange(change));
  };

  return async ({ method, path, body }) => {
    if (method === 'GET' && path === '/health') return { status: 200, body: { status: 'ok' } };
    if (path !== '/') return problem(404, 'NotFound', 'There is nothing here.');
    if (method !== 'POST') return problem(405, 'MethodNotAllowed', 'Use POST.', {}, { allow: 'POST' });
    return onPush(body);
  };
};
