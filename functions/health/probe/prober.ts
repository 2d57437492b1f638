/** Probes over raw sockets: CONNECT with TLS end to end for https targets, absolute form for http ones. */

import type { Socket } from 'node:net';
import type { SecureContext } from 'node:tls';

import type { Endpoint } from '#shared/domain/endpoint.ts';
import type { ProbeOutcome } from '#shared/domain/verdict.ts';

import { withinBudget, type Budget } from './budget.ts';
import { exchange, openTcp, openTls } from './connection.ts';
import { ProbeFailure } from './failure.ts';
import { noIdTokens, type IdTokens } from './id-tokens.ts';
import { parseBody, parseHead, type Parsed, type ResponseHead } from './response.ts';
import { makeSessions, type Sessions } from './sessions.ts';
import { exitAddressOf, pathWithNonce, type Target } from './target.ts';

export interface Via {
  readonly endpoint: Pick<Endpoint, 'host' | 'port' | 'scheme'>;
  readonly credentials?: { readonly username: string; readonly password: string };
}

export interface ProbeReply {
  readonly outcome: ProbeOutcome;
  /** The address that an echo target saw. */
  readonly exitAddress?: string;
  /** For logs; without credentials. */
  readonly detail?: string;
  /** The target at which it failed. */
  readonly failed?: Target;
}

export interface Prober {
  /**
   * Fetches the targets one after the other, through `via` or directly, all within `budgetMs`. Never throws; the first
   * failure is the outcome.
   */
  probe(via: Via | undefined, targets: readonly Target[], budgetMs: number): Promise<ProbeReply>;
}

interface Answer {
  readonly head: ResponseHead;
  readonly body: Buffer;
}

const parseAnswer =
  (kind: Target['kind']) =>
  (bytes: Buffer, ended: boolean): Parsed<Answer> => {
    const head = parseHead(bytes);
    if (head.kind !== 'done') return head;
    // Only the status counts where the body is of no interest, and where the request failed.
    if (kind === 'page' || head.value.status !== 200)
      return { kind: 'done', value: { head: head.value, body: Buffer.alloc(0) } };
    const body = parseBody(bytes, head.value, ended);
    return body.kind === 'done' ? { kind: 'done', value: { head: head.value, body: body.value } } : body;
  };

const authorization = ({ credentials }: Via): string =>
  credentials
    ? `Proxy-Authorization: Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')}\r\n`
    : '';

const getRequest = (uri: string, authority: string, more = ''): string =>
  `GET ${uri} HTTP/1.1\r\nHost: ${authority}\r\nUser-Agent: egress-health\r\nAccept: application/json, */*\r\n${more}Connection: close\r\n\r\n`;

/** Answers with which a proxy says that it got no connection to the target. */
const NO_WAY = new Set([502, 503, 504]);

const refusalOfConnect = (status: number): ProbeFailure => {
  const detail = `CONNECT answered ${status}`;
  if (status === 407 || status === 401) return new ProbeFailure('ProxyAuthFailed', detail);
  return new ProbeFailure(NO_WAY.has(status) ? 'TargetUnreachable' : 'ProxyError', detail);
};

/** A page after a successful CONNECT comes from the proxy itself: RFC 9110 (9.3.6) has no content there. */
const isCaptive = (bytes: Buffer, { headers, length }: ResponseHead): boolean =>
  bytes.length > length || Number(headers.get('content-length') ?? 0) > 0;

const parseConnect = (bytes: Buffer): Parsed<{ head: ResponseHead; captive: boolean }> => {
  const head = parseHead(bytes);
  return head.kind === 'done'
    ? { kind: 'done', value: { head: head.value, captive: isCaptive(bytes, head.value) } }
    : head;
};

const openTunnel = async (socket: Socket, { authority }: Target, via: Via): Promise<void> => {
  const request = `CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${authorization(via)}\r\n`;
  const { head, captive } = await exchange(socket, request, parseConnect, 'ProxyError');
  if (head.status < 200 || head.status > 299) throw refusalOfConnect(head.status);
  if (captive) throw new ProbeFailure('WrongContent', 'the proxy answered CONNECT with a page');
};

/** A proxy shows its certificate each time: it is the one that is probed. */
const openProxy = async (
  budget: Budget,
  { endpoint }: Via,
  secureContext: SecureContext,
): Promise<Socket> => {
  const socket = await openTcp(budget, endpoint);
  return endpoint.scheme === 'https'
    ? openTls(budget, socket, { host: endpoint.host, secureContext })
    : socket;
};

/** An echo asks nobody to log in, so that its 401 is the proxy's. */
const isProxyAuth = ({ status, headers }: ResponseHead, kind: Target['kind']): boolean =>
  status === 407 || headers.has('proxy-authenticate') || (status === 401 && kind === 'echo');

const badStatus = ({ head }: Answer, kind: Target['kind'], absolute: boolean): ProbeFailure | undefined => {
  const { status } = head;
  if (kind === 'echo' ? status === 200 : status >= 200 && status <= 299) return undefined;
  const detail = `GET answered ${status}`;
  if (absolute && isProxyAuth(head, kind)) return new ProbeFailure('ProxyAuthFailed', detail);
  if (absolute && NO_WAY.has(status)) return new ProbeFailure('TargetUnreachable', detail);
  return new ProbeFailure(status < 400 ? 'WrongContent' : 'TargetRefused', detail);
};

/** What one target is fetched with. `login` is a header line, and goes to the target alone, inside TLS. */
interface Fetch {
  readonly target: Target;
  readonly login: string;
}

interface Trust {
  readonly secureContext: SecureContext;
  readonly sessions: Sessions;
}

const fetchTarget = async (
  budget: Budget,
  via: Via | undefined,
  { target, login }: Fetch,
  nonce: string,
  { secureContext, sessions }: Trust,
): Promise<string | undefined> => {
  const path = target.kind === 'echo' ? pathWithNonce(target, nonce) : target.path;
  const absolute = via !== undefined && !target.secure;
  let socket = via ? await openProxy(budget, via, secureContext) : await openTcp(budget, target.place);
  if (target.secure) {
    if (via) await openTunnel(socket, target, via);
    const { place, kind, authority } = target;
    const resumed = kind === 'echo' ? { resumed: { sessions, authority } } : {};
    socket = await openTls(budget, socket, { host: place.host, secureContext, ...resumed });
  }
  const request = absolute
    ? getRequest(`http://${target.authority}${path}`, target.authority, authorization(via))
    : getRequest(path, target.authority, target.secure ? login : '');
  const answer = await exchange(
    socket,
    request,
    parseAnswer(target.kind),
    absolute ? 'ProxyError' : 'WrongContent',
  );
  const failure = badStatus(answer, target.kind, absolute);
  if (failure) throw failure;
  return target.kind === 'echo' ? exitAddressOf(answer.body, nonce) : undefined;
};

const fetchOf = async (target: Target, idTokens: IdTokens): Promise<Fetch> => {
  if (target.audience === undefined) return { target, login: '' };
  try {
    return { target, login: `Authorization: Bearer ${await idTokens.of(target.audience)}\r\n` };
  } catch (error) {
    const why = error instanceof Error ? error.message.slice(0, 200) : 'unknown';
    throw new ProbeFailure('NotProbed', `no ID token: ${why}`);
  }
};

export const makeProber = (
  secureContext: SecureContext,
  nonces: { token(): string },
  idTokens: IdTokens = noIdTokens,
): Prober => {
  const trust = { secureContext, sessions: makeSessions() };
  return {
    async probe(via, targets, budgetMs) {
      let failed = targets[0];
      try {
        // Before the clock runs: what keeps a token away must not look like a slow proxy.
        const fetches = await Promise.all(targets.map((target) => fetchOf(target, idTokens)));
        const exitAddress = await withinBudget(budgetMs, async (budget) => {
          let seen: string | undefined;
          for (const one of fetches) {
            failed = one.target;
            seen = (await fetchTarget(budget, via, one, nonces.token(), trust)) ?? seen;
          }
          return seen;
        });
        return { outcome: 'Ok', ...(exitAddress === undefined ? {} : { exitAddress }) };
      } catch (error) {
        if (error instanceof ProbeFailure)
          return { outcome: error.outcome, detail: error.message, ...(failed ? { failed } : {}) };
        // Not what any peer can cause: it must not count against a proxy.
        return { outcome: 'NotProbed', detail: error instanceof Error ? error.message : 'unknown' };
      }
    },
  };
};
